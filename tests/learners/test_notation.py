"""Learners as text: everything that can be said, and nothing that can run."""

from __future__ import annotations

import pytest

from gristmill import DropOldest, Gaussian, Hinge, KernelClassifier, Linear, Perceptron
from gristmill.notation import NotationError, catalogue_names, parse, vocabulary, written
from gristmill.race import expert_sets as _expert_sets


def test_parts_and_learners():
    model = parse("KernelClassifier(Gaussian(gamma=0.5), Perceptron(), DropOldest(10))")
    assert (model.kernel, model.rule, model.budget) == (Gaussian(0.5), Perceptron(), DropOldest(10))
    assert isinstance(model, KernelClassifier)
    norma = parse("norma_classifier(Linear(), rate=0.5, reg=1e-3, loss=Hinge(0.2))")
    assert norma.rule.loss == Hinge(0.2)
    assert parse("2 * Gaussian(1.0) + Linear()") == 2 * Gaussian(1.0) + Linear()


def test_the_kernel_and_the_seed_may_be_said_elsewhere():
    assert parse("perceptron", Gaussian(3.0)).kernel == Gaussian(3.0)
    assert parse("passive_aggressive(0.5, size=7)", Gaussian(3.0)).rule.C == 0.5
    assert parse("perceptron(Linear())", Gaussian(3.0), seed=4).kernel == Linear()
    assert parse("perceptron(Linear())", seed=4).random_state == 4


def test_every_catalogue_entry_can_be_named():
    assert {"perceptron", "norma_novelty", "passive_aggressive"} <= set(catalogue_names())
    assert set(catalogue_names()) <= set(vocabulary())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("perceptrn()", "there is no 'perceptrn'; did you mean 'perceptron'"),
        ("Gausian(1)", "did you mean 'Gaussian'"),
        ("perceptron(", "at column"),
        ("perceptron().fit", "is not understood"),
        ("__import__('os').system('true')", "is not understood|there is no"),
        ("perceptron(kernel=lambda x: x)", "is not understood"),
        ("[x for x in ()]", "is not understood"),
        ("Gaussian(-1)", "gamma must be a number > 0, got -1"),
        ("Gaussian(1, 2, 3)", "positional argument"),
        ("forgetron(bugdet=3)" if "forgetron" in catalogue_names() else "perceptron(bugdet=3)", "bugdet"),
        ("1 / 2", "is not understood"),
    ],
)
def test_what_cannot_be_said(text, message):
    with pytest.raises(NotationError, match=message):
        parse(text)


@pytest.mark.parametrize("made", [_expert_sets.for_classes(8), _expert_sets.for_numbers(8)])
def test_what_is_written_can_be_read_back(made):
    for expert in made:
        text = written(expert)
        assert "\n" not in text
        if text.partition("(")[0] in vocabulary():
            assert repr(parse(text)) == repr(expert)


def test_defaults_are_not_written():
    assert written(KernelClassifier()) == "KernelClassifier()"
    assert (
        written(KernelClassifier(Linear(), budget=DropOldest(5)))
        == "KernelClassifier(Linear(), budget=DropOldest(size=5))"
    )
    assert written(Hinge(nu=0.5)) == "Hinge(nu=0.5)"
    assert written(KernelClassifier(average=True, passes=3)) == "KernelClassifier(average=True, passes=3)"
    assert written(KernelClassifier(passes=1.0)) == "KernelClassifier(passes=1.0)"


def test_what_makes_other_learners_is_known_too():
    race = parse("Race([KernelClassifier(Gaussian(1.0)), Prepared(KernelClassifier(), 'minmax')])")
    assert type(race).__name__ == "RaceClassifier"
    assert len(race.experts) == 2
    assert (
        type(parse("FeatureLearner(RandomMaclaurin(Polynomial(2), 50), PassiveAggressive())")).__name__
        == "FeatureClassifier"
    )
