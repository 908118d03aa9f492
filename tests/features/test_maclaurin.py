"""RandomMaclaurin: unbiased for every kernel and option, and the same map however it is asked."""

import math
import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import gristmill
from gristmill import Exponential, Gaussian, Linear, Polynomial, RandomMaclaurin, Sigmoid, Vovk
from gristmill.features import Compose, DotProduct, n_components_for, truncation_degree, truncation_error
from gristmill.features import _degree_law as law
from gristmill.features.series import series_of

PLAIN = {"stratified": False, "signs": "real"}
KERNELS = [
    Polynomial(3),
    Polynomial(4, gamma=0.8, coef0=0.0),
    Exponential(1.2),
    Vovk(4),
    Vovk(),
    Linear(),
    DotProduct([0.0, 1.0, 0.0, 2.0]),
    DotProduct(lambda n: 0.5**n, radius=2.0),
    Polynomial(2) + 0.5 * Exponential(2.0),
    Linear() * Polynomial(2),
]
OPTIONS = [
    {"p": 2.0, **PLAIN},
    {"p": 1.5, **PLAIN},
    {"p": 3.0, **PLAIN},
    {"p": 3.0, "exact_low_order": True, **PLAIN},
    {"signs": "real"},
    {"stratified": False},
    {},
    {"measure": "optimal"},
    {"measure": "optimal", **PLAIN},
    {"structured": True},
    {"structured": True, "exact_low_order": True, **PLAIN},
    {"exact_low_order": True, "measure": "optimal"},
]


def rows(n=5, d=6, radius=1.0, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return radius * X / np.linalg.norm(X, axis=1)[:, None]


def gram(X, *args, **options):
    Z = RandomMaclaurin(*args, **options).fit_transform(X)
    return Z @ Z.T


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: re.sub(r" at 0x\w+", "", repr(kernel)))
def test_the_mean_over_draws_is_the_kernel(kernel, options):
    # Many columns a draw: the mean of few heavy-tailed products has no honest standard error.
    X = rows(3, radius=0.5 if kernel == Vovk() else 0.7)
    draws = np.array([gram(X, kernel, 151, random_state=seed, **options) for seed in range(60)])
    error = draws.std(axis=0) / math.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - kernel(X, X)) <= 4 * error + 1e-9)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (Exponential(1.0), {}),
        (Exponential(1.0), PLAIN),
        (Exponential(1.0), {"exact_low_order": True}),
        (Polynomial(3), {}),
        (Polynomial(3), PLAIN),
        (Polynomial(2, coef0=0.0), {}),
        (Polynomial(2, coef0=0.0), {"structured": True}),
    ],
    ids=repr,
)
def test_the_error_falls_as_one_over_the_root_of_the_features(kernel, options):
    X = rows(40, 50, seed=1)
    sizes = [10, 40, 160, 640, 5000]
    errors = [
        np.sqrt(
            np.mean([np.mean((gram(X, kernel, size, random_state=s, **options) - kernel(X, X)) ** 2) for s in range(8)])
        )
        for size in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 <= slope <= -0.4


def moments(x, y):
    return x @ x * (y @ y), x @ y, np.sum(x * x * y * y)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_the_variance_of_the_plain_law_is_the_formula(p):
    x, y = rows(2, 8, seed=3)
    kernel, size = Exponential(1.5), 20
    drawn = law.geometric(series_of(kernel), p, 0, None)
    A, c, s = moments(x, y)
    m = A + 2 * c * c - 2 * s
    exact = (np.sum(np.exp(2 * drawn.logs) * m**drawn.degrees / drawn.probabilities) - kernel(x, y) ** 2) / size
    values = np.array(
        [gram(np.array([x, y]), kernel, size, p=p, random_state=seed, **PLAIN)[0, 1] for seed in range(4000)]
    )
    assert values.var() == pytest.approx(exact, rel=0.2)
    assert np.sum(drawn.probabilities) == pytest.approx(1.0)
    assert drawn.probabilities[:3] == pytest.approx([(p - 1) / p, (p - 1) / p**2, (p - 1) / p**3])


@pytest.mark.parametrize("signs", ["real", "complex"])
def test_the_variance_of_both_sketches_is_the_formula(signs):
    x, y = np.abs(rows(2, 8, seed=4))
    A, c, s = moments(x, y)
    size, n = 20, 3
    if signs == "real":
        exact = ((A + 2 * c * c - 2 * s) ** n - c ** (2 * n)) / size
    else:
        exact = ((A + c * c - s) ** n + (2 * c * c - s) ** n - 2 * c ** (2 * n)) / size
    kernel = Polynomial(n, coef0=0.0)
    values = np.array([gram(np.array([x, y]), kernel, size, signs=signs, random_state=i)[0, 1] for i in range(6000)])
    assert values.var() == pytest.approx(exact, rel=0.25)
    if signs == "complex":
        assert exact < 0.8 * ((A + 2 * c * c - 2 * s) ** n - c ** (2 * n)) / size


def test_each_option_beats_the_plain_law_where_it_should():
    X = rows(40, 20, seed=5)

    def error(kernel, **options):
        squares = [np.mean((gram(X, kernel, 100, random_state=s, **options) - kernel(X, X)) ** 2) for s in range(30)]
        return math.sqrt(np.mean(squares))

    plain = error(Exponential(1.0), **PLAIN)
    assert error(Exponential(1.0), signs="real") < 0.8 * plain
    assert error(Exponential(1.0)) < 0.8 * plain
    assert error(Exponential(1.0), structured=True) < 0.7 * plain
    assert error(Exponential(1.0), exact_low_order=True) < 0.5 * plain
    steep = Polynomial(10, gamma=0.5, coef0=0.5)
    assert error(steep, measure="optimal") < 0.8 * error(steep)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_a_feature_is_a_product_of_signed_projections(options):
    model = RandomMaclaurin(Polynomial(4), 30, random_state=1, **options).fit(rows())
    lead = model._n_features_out - 30
    Z = model.transform(np.eye(6))[:, lead:]
    singles, pairs = len(model._degrees), len(model._pair_degrees)
    assert np.abs(Z[:, :singles]) == pytest.approx(np.tile(model._weights, (6, 1)))
    lengths = np.hypot(Z[:, singles : singles + pairs], Z[:, singles + pairs :])
    assert lengths == pytest.approx(np.tile(model._pair_weights, (6, 1)))
    X = rows(seed=2)
    scaled, base = model.transform(1.5 * X)[:, lead:], model.transform(X)[:, lead:]
    assert scaled == pytest.approx(1.5**model.degrees_ * base)


def test_orthogonal_rows_make_the_linear_term_exact():
    X = rows(7, 16)
    for size in (16, 48):
        model = RandomMaclaurin(Linear(), size, signs="real", structured=True, random_state=0)
        Z = model.fit_transform(X)
        assert pytest.approx(X @ X.T) == Z @ Z.T


def test_a_homogeneous_kernel_never_gives_the_zero_map():
    for seed in range(5):
        model = RandomMaclaurin(Polynomial(10, coef0=0.0), 1, random_state=seed).fit(rows())
        assert model.degrees_.tolist() == [10]
        assert np.all(model.transform(rows()) != 0)


def test_stratified_degrees_have_fixed_counts():
    counts = {
        tuple(np.bincount(RandomMaclaurin(Polynomial(3), 64, random_state=s).fit(rows()).degrees_)) for s in range(5)
    }
    assert counts == {(1, 36, 18, 9)}
    only = RandomMaclaurin(Exponential(), 50, random_state=0, max_degree=4).fit(rows()).degrees_
    assert only.max() <= 4
    assert np.sum(only == 0) == 1


@pytest.mark.parametrize(
    ("kernel", "width"),
    [
        (Polynomial(10), 1 + 6),
        (Polynomial(4, coef0=0.0), 0),
        (DotProduct([2.0, 0.0, 1.0]), 1),
        (DotProduct([0, 3, 1]), 6),
    ],
    ids=repr,
)
def test_exact_low_order_puts_the_first_two_terms_in_front(kernel, width):
    X = rows()
    Z = RandomMaclaurin(kernel, 12, exact_low_order=True, random_state=0).fit_transform(X)
    assert Z.shape == (5, width + 12)
    series = series_of(kernel)
    exact = series.coefficient(0) + series.coefficient(1) * X @ X.T
    assert Z[:, :width] @ Z[:, :width].T == pytest.approx(exact, abs=1e-12)


def test_exact_low_order_of_a_linear_kernel_is_the_exact_map():
    X = rows()
    assert gram(X, DotProduct([2.0, 3.0]), 5, exact_low_order=True) == pytest.approx(2 + 3 * X @ X.T)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_however_the_rows_are_cut_and_stored_the_features_are_the_same(options):
    X = rows(150, 37, seed=7)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    model = RandomMaclaurin(Exponential(), 101, random_state=3, **options).fit(X)
    whole = model.transform(X)
    pieces = np.concatenate([model.transform(X[i : i + 7]) for i in range(0, 150, 7)])
    assert np.array_equal(whole, pieces)
    assert np.array_equal(whole, model.transform(np.asfortranarray(X)))
    for kind in (sp.csr_matrix, sp.csr_array, sp.coo_array):
        assert np.array_equal(model.transform(kind(X)), whole)
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(whole, rel=1e-3, abs=1e-4)
    assert np.array_equal(single, model.transform(sp.csr_array(X.astype(np.float32))))
    again = RandomMaclaurin(Exponential(), 101, random_state=3, **options).fit_transform(X)
    assert np.array_equal(again, whole)
    other = RandomMaclaurin(Exponential(), 101, random_state=4, **options).fit_transform(X)
    assert not np.array_equal(other, whole)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_a_saved_map_is_the_same_map(tmp_path, options):
    X = rows()
    model = RandomMaclaurin(DotProduct([1.0, 2.0, 0.5, 0.25]), 20, random_state=3, **options).fit(X)
    model.save(tmp_path / "map")
    for back in (gristmill.load(tmp_path / "map"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(back.transform(X), model.transform(X))
        assert back.get_params()["n_components"] == 20
    data = bytearray((tmp_path / "map").read_bytes())
    data[-9] ^= 0xFF
    (tmp_path / "map").write_bytes(bytes(data[:-4]))
    with pytest.raises(gristmill.ModelFileError):
        gristmill.load(tmp_path / "map")


def test_code_is_not_saved(tmp_path):
    model = RandomMaclaurin(DotProduct(lambda n: 0.5**n, radius=2.0), 5).fit(rows())
    with pytest.raises(TypeError, match="Python code"):
        model.save(tmp_path / "map")


def test_truncation_loses_no_more_than_its_bound():
    X, k = rows(20, 6, 1.3, seed=1), truncation_degree(Exponential(), 0.05, 1.3)
    assert truncation_error(Exponential(), k, 1.3) <= 0.05 < truncation_error(Exponential(), k - 1, 1.3)
    cut = DotProduct([1 / math.factorial(n) for n in range(k + 1)])
    loss = np.abs(cut(X, X) - Exponential()(X, X)).max()
    assert loss <= truncation_error(Exponential(), k, 1.3) * (1 + 1e-9)
    assert loss == pytest.approx(truncation_error(Exponential(), k, 1.3), rel=1e-6)  # reached on the diagonal
    model = RandomMaclaurin(Exponential(), 20, max_degree=k)
    assert model.truncation_error(1.3) == truncation_error(Exponential(), k, 1.3)
    draws = np.array([gram(X[:4], Exponential(), 9, max_degree=2, random_state=s) for s in range(300)])
    quadratic = DotProduct([1.0, 1.0, 0.5])(X[:4], X[:4])
    assert np.all(np.abs(draws.mean(axis=0) - quadratic) <= 4 * draws.std(axis=0) / math.sqrt(300) + 1e-9)


def test_the_uniform_bound_is_the_corrected_theorem():
    for p in (1.5, 2.0, 4.0):
        R, d, eps, delta = 0.8, 7, 0.3, 0.01
        C = p * math.exp(p * R * R) / (p - 1)
        L = R * math.exp(R * R) + p**2 * R * math.sqrt(d) * math.exp(p * R * R) / (p - 1)
        D = n_components_for(Exponential(), eps, delta, d, R, p=p)
        chance = math.log(2) + 2 * d * math.log(32 * R * L / eps) - np.array([D, D - 1]) * eps**2 / (8 * C * C)
        assert chance[0] <= math.log(delta) < chance[1]
        assert RandomMaclaurin(Exponential(), p=p).n_components_for(eps, delta, d, R) == D
    assert n_components_for(Vovk(3), 0.5, 0.1, 5, 0.5) > n_components_for(Vovk(3), 1.0, 0.1, 5, 0.5)
    with pytest.raises(ValueError, match=r"a radius below 0\.707107 would work"):
        n_components_for(Vovk(), 0.1, 0.1, 5, 0.8)


# ---- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: DotProduct([1.0, -0.5]), ValueError, "a_1 = -0.5 is negative"),
        (
            lambda: DotProduct(lambda n: math.cos(n * math.pi / 2), radius=math.inf),
            ValueError,
            "a_2 = -1 is negative",
        ),
        (lambda: DotProduct([]), ValueError, "at least one"),
        (lambda: DotProduct([0.0, 0.0]), ValueError, "every coefficient is 0"),
        (lambda: DotProduct([1.0, math.nan]), ValueError, "a_1 = nan"),
        (lambda: DotProduct(lambda n: 1.0), ValueError, "radius must be given"),
        (lambda: DotProduct([1.0], radius=-1), ValueError, "radius must be a number > 0"),
        (lambda: Polynomial(2.5), ValueError, "degree must be a whole number"),
        (lambda: Polynomial(2, coef0=-1.0), ValueError, "coef0 must be a number >= 0"),
        (lambda: RandomMaclaurin(Sigmoid()).fit(rows()), ValueError, "negative Maclaurin coefficients"),
        (lambda: RandomMaclaurin(Gaussian()).fit(rows()), TypeError, "dot-product kernel"),
        (
            lambda: RandomMaclaurin(Polynomial(2), 0).fit(rows()),
            ValueError,
            "n_components must be a whole number >= 1, got 0",
        ),
        (lambda: RandomMaclaurin(Polynomial(2), 2.5).fit(rows()), ValueError, "n_components"),
        (lambda: RandomMaclaurin(Polynomial(2), p=1.0).fit(rows()), ValueError, "p must be at least"),
        (
            lambda: RandomMaclaurin(Polynomial(2), measure="best").fit(rows()),
            TypeError,
            "measure must be one of",
        ),
        (lambda: RandomMaclaurin(Polynomial(2), signs="all").fit(rows()), TypeError, "signs must be one of"),
        (
            lambda: RandomMaclaurin(Polynomial(9, coef0=0.0), max_degree=3).fit(rows()),
            ValueError,
            "raise max_degree",
        ),
        (
            lambda: RandomMaclaurin(Polynomial(2)).fit(sp.csr_array(np.eye(3, dtype=int))),
            TypeError,
            "sparse matrix of int64",
        ),
        (lambda: RandomMaclaurin(Polynomial(2)).fit([[1.0, math.nan]]), ValueError, "NaN"),
        (
            lambda: RandomMaclaurin(Polynomial(2)).fit(rows()).transform(np.full((3, 6), [1, 1, 1, math.nan, 1, 1])),
            ValueError,
            "NaN: row 0, column 3",
        ),
        (
            lambda: RandomMaclaurin(Polynomial(9)).fit(rows()).transform(1e80 * rows()),
            ValueError,
            "row 0 is too large",
        ),
        (
            lambda: RandomMaclaurin(Vovk(), random_state=0).fit(rows(radius=0.4)).transform(rows(radius=1.25)),
            ValueError,
            r"row 0 has norm 1\.25, .* norms below 1; multiply the inputs by less than 0\.8",
        ),
        (
            lambda: RandomMaclaurin(Vovk(), measure="optimal").fit(rows(radius=0.9)),
            ValueError,
            "does not converge",
        ),
    ],
)
def test_bad_input_is_refused_by_name(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_an_infinite_variance_is_said():
    with pytest.warns(UserWarning, match=r"variance sum_n a_n\^2 m\^n / P\[N = n\] is infinite"):
        RandomMaclaurin(Vovk(), 10).fit(rows(radius=0.95))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RandomMaclaurin(Vovk(), 10).fit(rows(radius=0.5))
        RandomMaclaurin(Vovk(), 10, max_degree=5).fit(rows(radius=0.95))


# ---- scikit-learn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"measure": "optimal", "structured": True}, {"exact_low_order": True}])
def test_scikit_learns_own_checks_pass(options):
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(RandomMaclaurin(Polynomial(2), 20, random_state=0, **options))


def test_in_a_pipeline_and_with_names():
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    X = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    y = X[:, 0] * X[:, 1] > 0
    map_ = RandomMaclaurin(Polynomial(2), 60, random_state=0)
    # The average of the steps: where single ones end depends on their order, and in scikit-learn 1.6 on seed 0 badly.
    for final in (LinearSVC(), SGDClassifier(average=True, random_state=0)):
        assert make_pipeline(map_, final).fit(X, y).score(X, y) > 0.95
    grid = GridSearchCV(make_pipeline(map_, LinearSVC()), {"randommaclaurin__kernel": [Linear(), Polynomial(2)]}, cv=3)
    assert grid.fit(X, y).best_params_["randommaclaurin__kernel"] == Polynomial(2)
    frame = map_.set_output(transform="pandas").fit_transform(X)
    assert frame.columns[-1] == map_.get_feature_names_out()[-1] == "randommaclaurin59"


# ---- compositions ------------------------------------------------------------------------------------------


def chi2(X, Y):
    total = X[:, None] + Y[None]
    return np.sum(np.where(total > 0, 2 * X[:, None] * Y[None] / np.where(total > 0, total, 1), 0), axis=2)


def compositions():
    from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler

    from gristmill import Laplacian
    from gristmill.features import FourierFeatures, HomogeneousFeatures

    outer = Polynomial(2, gamma=0.7)
    f = lambda t: (0.7 * t + 1) ** 2  # noqa: E731
    return [
        ("gaussian", outer, Gaussian(0.8), lambda X: f(Gaussian(0.8)(X, X))),
        ("laplacian", Exponential(1.5), FourierFeatures(Laplacian(0.5)), lambda X: np.exp(Laplacian(0.5)(X, X) / 2.25)),
        ("chi2", outer, HomogeneousFeatures("chi2"), lambda X: f(chi2(X, X))),
        ("intersection", outer, HomogeneousFeatures("intersection"),
         lambda X: f(np.minimum(X[:, None], X[None]).sum(axis=2))),
        ("kernel", outer, Polynomial(2), lambda X: f((X @ X.T + 1) ** 2)),
        ("map", outer, RandomMaclaurin(Exponential(1.0)), lambda X: f(np.exp(X @ X.T))),
        ("rbf sampler", outer, RBFSampler(gamma=0.8), lambda X: f(Gaussian(0.8)(X, X))),
        ("chi2 sampler", outer, AdditiveChi2Sampler(sample_steps=2),
         lambda X: f((Z := AdditiveChi2Sampler(sample_steps=2).fit_transform(X)) @ Z.T)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "outer", "inner", "exact"), compositions(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_compositions_are_unbiased(name, outer, inner, exact):
    X = np.abs(rows(4, 3, 0.8, seed=6))
    X[0, 1] = 0
    for options in ({}, PLAIN):
        draws = np.array([gram(X, Compose(outer, inner), 101, random_state=s, **options) for s in range(80)])
        error = draws.std(axis=0) / math.sqrt(len(draws))
        assert np.all(np.abs(draws.mean(axis=0) - exact(X)) <= 4 * error + 1e-9)


@pytest.mark.parametrize(
    ("name", "outer", "inner", "exact"), compositions(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_compositions_keep_their_manners(tmp_path, name, outer, inner, exact):
    X = np.abs(rows(30, 3, 0.8, seed=6))
    model = RandomMaclaurin(Compose(outer, inner), 15, random_state=2).fit(X)
    Z = model.transform(X)
    assert np.array_equal(np.concatenate([model.transform(X[:11]), model.transform(X[11:])]), Z)
    assert model.transform(sp.csr_array(X)) == pytest.approx(Z)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), Z)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    if "sampler" in name:
        with pytest.raises(TypeError, match="pickle it instead"):
            model.save(tmp_path / "map")
    else:
        model.save(tmp_path / "map")
        assert np.array_equal(gristmill.load(tmp_path / "map").transform(X), Z)


def test_compositions_refuse_what_makes_no_sense():
    from gristmill.features import FourierFeatures, HomogeneousFeatures

    X = rows(4, 3)
    for bad, words in [
        (lambda: Compose(Gaussian(), Gaussian()), "dot-product kernel"),
        (lambda: Compose(Polynomial(2), 3), "inner must be"),
        (lambda: FourierFeatures(Polynomial(2)), "kernel must be Gaussian"),
        (lambda: HomogeneousFeatures("hellinger"), "kernel must be one of"),
        (
            lambda: RandomMaclaurin(Compose(Polynomial(2), Gaussian()), exact_low_order=True).fit(X),
            "need the inner product",
        ),
        (
            lambda: RandomMaclaurin(Compose(Polynomial(2), HomogeneousFeatures())).fit(X).transform(X),
            "non-negative rows",
        ),
        (
            lambda: RandomMaclaurin(Compose(Vovk(), Gaussian())).fit(X),
            r"K\(x, x\) = 1 under the inner kernel",
        ),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            bad()
