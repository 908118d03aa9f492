// Bindings of mixtures: scores of experts in, mixed predictions out.
#include "core/mixture/mixture.hpp"
#include "bind/archive.hpp"
#include "bind/bind.hpp"
#include "core/mixture/least_squares.hpp"
#include "core/mixture/novelty_mixture.hpp"

namespace gristmill::bind {

namespace {

// (experts, rows, outputs)
using Scores = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::vector<Mixture::ExpertScores> expert_scores_from(const Mixture& mixture, const Scores& scores,
                                                      const std::vector<std::size_t>& experts) {
    if (scores.shape(0) != experts.size() || scores.shape(2) != mixture.outputs())
        throw nb::value_error("scores must be of these experts, one number an output");
    std::vector<Mixture::ExpertScores> expert_scores;
    for (std::size_t i = 0; i < experts.size(); ++i) {
        if (experts[i] >= mixture.experts()) throw nb::value_error("there is no such expert");
        expert_scores.push_back({experts[i], scores.data() + i * scores.shape(1) * scores.shape(2)});
    }
    return expert_scores;
}

// Calls f with each row of one number per expert; NaN for experts without a score.
template <class F>
void each_row(const NoveltyMixture& mixture, const Scores& expert_scores, const std::vector<std::size_t>& experts,
              F f) {
    if (expert_scores.shape(0) != experts.size() || expert_scores.shape(2) != 1)
        throw nb::value_error("scores must be of these experts, one number each");
    for (const std::size_t expert : experts)
        if (expert >= mixture.experts()) throw nb::value_error("there is no such expert");
    std::vector<double> row(mixture.experts(), elementary::kNaN);
    for (std::size_t r = 0; r < expert_scores.shape(1); ++r) {
        for (std::size_t i = 0; i < experts.size(); ++i)
            row[experts[i]] = expert_scores.data()[i * expert_scores.shape(1) + r];
        f(r, row);
    }
}

double log_of_share(double share) { return share >= 0x1p-1022 ? elementary::quick_log(share) : elementary::log(share); }

// Probabilities as scores: log odds of two classes, logarithms of more; numbers unchanged.
Doubles scores_of(const Mixture& mixture, const std::vector<double>& mixed, std::size_t rows) {
    const std::size_t k = mixture.columns(), outputs = mixture.outputs();
    std::vector<double> scores(rows * outputs);
    for (std::size_t r = 0; r < rows; ++r) {
        const double* from = mixed.data() + r * k;
        if (k == 1) scores[r] = from[0];
        else if (outputs == 1) scores[r] = log_of_share(from[1]) - log_of_share(from[0]);
        else
            for (std::size_t c = 0; c < k; ++c) scores[r * k + c] = log_of_share(from[c]);
    }
    return array_of(std::move(scores), {rows, outputs});
}

// Scores as probabilities.
Doubles probabilities_of(const Mixture& mixture, Array2<double> scores) {
    const std::size_t rows = scores.shape(0), outputs = scores.shape(1),
                      k = std::max<std::size_t>(mixture.classes(), 1);
    if (outputs != mixture.outputs()) throw std::runtime_error("a class came between scores and probabilities");
    std::vector<double> shares(rows * k, 1.0);
    for (std::size_t r = 0; r < rows && k > 1; ++r) {
        const double* from = scores.data() + r * outputs;
        double* to = shares.data() + r * k;
        if (outputs == 1) {
            to[0] = Loss::sigmoid(-from[0]);
            to[1] = Loss::sigmoid(from[0]);
            continue;
        }
        double sum = 0;
        for (std::size_t c = 0; c < k; ++c) sum += to[c] = elementary::exp(from[c]);
        for (std::size_t c = 0; c < k; ++c) to[c] /= sum;
    }
    return array_of(std::move(shares), {rows, k});
}

nb::ndarray<nb::numpy, double> listed(std::span<const double> values) {
    return array_of(std::vector<double>(values.begin(), values.end()));
}

}  // namespace

void bind_mixture(nb::module_& m) {
    m.def(
        "logarithms",
        [](Array2<double> values) {
            std::vector<double> logs(values.data(), values.data() + values.size());
            for (double& x : logs) x = log_of_share(x);
            return array_of(std::move(logs), {values.shape(0), values.shape(1)});
        },
        nb::arg("values"));
    m.def(
        "interleaved", [](const std::vector<std::vector<double>>& lists) { return array_of(interleaved(lists)); },
        nb::arg("lists"), "The last values of several streams at an even pace; no more than the longest list has.");
    nb::class_<NoveltyMixture>(m, "NoveltyMixture")
        .def(nb::init<std::size_t, double>(), nb::arg("experts"), nb::arg("rate"))
        .def(
            "learn",
            [](NoveltyMixture& mixture, Scores expert_scores, const std::vector<std::size_t>& experts) {
                std::vector<double> out(expert_scores.shape(1));
                each_row(mixture, expert_scores, experts,
                         [&](std::size_t r, std::span<const double> row) { out[r] = mixture.learn(row); });
                return array_of(std::move(out), {expert_scores.shape(1), 1});
            },
            nb::arg("scores"), nb::arg("experts"))
        .def(
            "mix",
            [](const NoveltyMixture& mixture, Scores expert_scores, const std::vector<std::size_t>& experts) {
                std::vector<double> out(expert_scores.shape(1));
                each_row(mixture, expert_scores, experts,
                         [&](std::size_t r, std::span<const double> row) { out[r] = mixture.mix(row); });
                return array_of(std::move(out), {expert_scores.shape(1), 1});
            },
            nb::arg("scores"), nb::arg("experts"))
        .def("leave", &NoveltyMixture::leave)
        .def("is_active", &NoveltyMixture::is_active)
        .def("copy", [](const NoveltyMixture& mixture) { return NoveltyMixture(mixture); })
        .def_prop_ro("margin", &NoveltyMixture::margin)
        // What a report reads of any mixture: there are alarms in place of errors.
        .def_prop_ro(
            "weights",
            [](const NoveltyMixture& mixture) {
                std::vector<double> weights;
                double active = 0;
                for (std::size_t e = 0; e < mixture.experts(); ++e) active += mixture.is_active(e);
                for (std::size_t e = 0; e < mixture.experts(); ++e)
                    weights.push_back(mixture.is_active(e) / std::max(active, 1.0));
                return array_of(std::move(weights));
            },
            nb::rv_policy::move)
        .def_prop_ro("own_errors", &NoveltyMixture::alarms)
        .def_prop_ro(
            "errors",
            [](const NoveltyMixture& mixture) {
                return array_of(std::vector<double>(mixture.experts(), elementary::kNaN));
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "events",
            [](const NoveltyMixture& mixture) {
                return array_of(std::vector<double>(mixture.experts(), static_cast<double>(mixture.seen())));
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "history",
            [](const NoveltyMixture& mixture) {
                return array_of(std::vector<double>(), {0, 2 + 2 * mixture.experts()});
            },
            nb::rv_policy::move)
        .def_prop_ro("seen", &NoveltyMixture::seen)
        .def_prop_ro("bytes", &NoveltyMixture::bytes)
        .def("state",
             [](NoveltyMixture& mixture) {
                 Archive archive;
                 mixture.visit(archive);
                 return to_dict(std::move(archive));
             })
        .def("restore", [](NoveltyMixture& mixture, nb::dict state) {
            Archive archive = from_dict(state);
            mixture.visit(archive);
        });
    nb::class_<LeastSquares>(m, "LeastSquares")
        .def(nb::init<std::size_t, double>(), nb::arg("width"), nb::arg("forget"))
        .def(
            "learn",
            [](LeastSquares& line, Array2<double> rows, Array1<double> targets) {
                if (rows.shape(1) != line.width() || targets.shape(0) != rows.shape(0))
                    throw nb::value_error("rows and targets do not fit");
                std::vector<double> predictions(rows.shape(0));
                for (std::size_t r = 0; r < predictions.size(); ++r)
                    predictions[r] = line.learn(rows.data() + r * line.width(), targets.data()[r]);
                return array_of(std::move(predictions));
            },
            nb::arg("rows"), nb::arg("targets"))
        .def(
            "score",
            [](const LeastSquares& line, Array2<double> rows) {
                if (rows.shape(1) != line.width()) throw nb::value_error("rows do not fit");
                std::vector<double> predictions(rows.shape(0));
                for (std::size_t r = 0; r < predictions.size(); ++r)
                    predictions[r] = line.score(rows.data() + r * line.width());
                return array_of(std::move(predictions));
            },
            nb::arg("rows"))
        .def("copy", [](const LeastSquares& line) { return LeastSquares(line); })
        .def_prop_ro("bytes", &LeastSquares::bytes)
        .def("state",
             [](LeastSquares& line) {
                 Archive archive;
                 line.visit(archive);
                 return to_dict(std::move(archive));
             })
        .def("restore", [](LeastSquares& line, nb::dict state) {
            Archive archive = from_dict(state);
            line.visit(archive);
        });
    nb::class_<Mixture>(m, "Mixture")
        .def(
            "__init__",
            [](Mixture* self, const std::string& kind, std::size_t experts, double share, double quantile) {
                if (experts == 0) throw nb::value_error("a mixture has at least one expert");
                if (!(quantile >= 0 && quantile < 1)) throw nb::value_error("a quantile is below 1, and 0 is none");
                new (self) Mixture(kind == "classes" ? Mixture::Kind::classes : Mixture::Kind::numbers, experts, share,
                                   quantile);
            },
            nb::arg("kind"), nb::arg("experts"), nb::arg("share"), nb::arg("quantile") = 0.0)
        .def("add_classes", &Mixture::add_classes)
        .def(
            "learn",
            [](Mixture& mixture, Scores scores, const std::vector<std::size_t>& experts, Array1<double> labels,
               std::size_t known_classes) {
                const auto expert_scores = expert_scores_from(mixture, scores, experts);
                const std::size_t rows = scores.shape(1);
                if (labels.shape(0) != rows) throw nb::value_error("scores and labels must have one length");
                if (mixture.columns() > 1)
                    for (std::size_t r = 0; r < rows; ++r)
                        if (!(labels.data()[r] >= 0 && labels.data()[r] < static_cast<double>(mixture.columns())))
                            throw nb::value_error("a label is no number of a class");
                std::vector<double> out(rows * mixture.columns());
                mixture.learn(expert_scores, rows, {labels.data(), rows}, known_classes, out.data());
                return scores_of(mixture, out, rows);
            },
            nb::arg("scores"), nb::arg("experts"), nb::arg("labels"), nb::arg("known_classes"))
        .def(
            "mix",
            [](const Mixture& mixture, Scores scores, const std::vector<std::size_t>& experts) {
                const auto expert_scores = expert_scores_from(mixture, scores, experts);
                std::vector<double> out(scores.shape(1) * mixture.columns());
                mixture.mix(expert_scores, scores.shape(1), out.data());
                return scores_of(mixture, out, scores.shape(1));
            },
            nb::arg("scores"), nb::arg("experts"))
        .def("probabilities", &probabilities_of)
        .def("leave", &Mixture::leave)
        .def("enter", &Mixture::enter)
        .def("reset_recent", &Mixture::reset_recent)
        .def("copy", [](const Mixture& mixture) { return Mixture(mixture); })
        .def_prop_ro("classes", &Mixture::classes)
        .def_prop_ro("outputs", &Mixture::outputs)
        .def_prop_ro("seen", &Mixture::seen)
        .def_prop_ro("bytes", &Mixture::bytes)
        .def("bytes_for", &Mixture::bytes_for)
        .def_prop_ro("own_errors", &Mixture::own_errors)
        .def_prop_ro(
            "weights", [](const Mixture& mixture) { return listed(mixture.weights()); }, nb::rv_policy::move)
        .def_prop_ro(
            "recent", [](const Mixture& mixture) { return listed(mixture.recent()); }, nb::rv_policy::move)
        .def_prop_ro(
            "counted", [](const Mixture& mixture) { return listed(mixture.counted()); }, nb::rv_policy::move)
        .def_prop_ro(
            "errors", [](const Mixture& mixture) { return listed(mixture.errors()); }, nb::rv_policy::move)
        .def_prop_ro(
            "events", [](const Mixture& mixture) { return listed(mixture.events()); }, nb::rv_policy::move)
        .def_prop_ro(
            "history",
            [](const Mixture& mixture) {
                const auto lines = mixture.history();
                return array_of(std::vector<double>(lines.begin(), lines.end()),
                                {lines.size() / mixture.line(), mixture.line()});
            },
            nb::rv_policy::move)
        .def("state",
             [](Mixture& mixture) {
                 Archive archive;
                 mixture.visit(archive);
                 return to_dict(std::move(archive));
             })
        .def("restore", [](Mixture& mixture, nb::dict state) {
            Archive archive = from_dict(state);
            mixture.visit(archive);
        });
}

}  // namespace gristmill::bind
