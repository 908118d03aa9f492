// Kernels, losses, rules and budgets from named settings: the one place that knows the names, wherever the settings come from.
//
// Settings answer by name: text(), number(), whole(), flag(), and given(), whether there is a value at all.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/kernels/kernels.hpp"
#include "core/parts/budgets.hpp"
#include "core/parts/rules.hpp"

namespace gristmill {

template <class S>
concept Settings = requires(const S& settings, const char* name) {
    { settings.given(name) } -> std::same_as<bool>;
    { settings.text(name) } -> std::convertible_to<std::string>;
    { settings.number(name) } -> std::same_as<double>;
    { settings.whole(name) } -> std::convertible_to<std::int64_t>;
    { settings.flag(name) } -> std::same_as<bool>;
};

template <class T, std::size_t N>
T named(const std::array<std::pair<std::string_view, T>, N>& list, std::string_view name, const char* what) {
    for (const auto& [key, value] : list)
        if (key == name) return value;
    throw std::invalid_argument("unknown " + std::string(what) + " " + std::string(name));
}

inline Op op_named(std::string_view name) {
    static constexpr auto ops =
        std::to_array<std::pair<std::string_view, Op>>({{"linear", Op::linear},
                                                        {"polynomial", Op::polynomial},
                                                        {"gaussian", Op::gaussian},
                                                        {"laplacian", Op::laplacian},
                                                        {"exponential", Op::exponential},
                                                        {"vovk", Op::vovk},
                                                        {"sigmoid", Op::sigmoid},
                                                        {"manhattan", Op::manhattan},
                                                        {"squared_euclidean", Op::squared_euclidean},
                                                        {"normalized", Op::normalized},
                                                        {"sum", Op::sum},
                                                        {"product", Op::product},
                                                        {"multiple", Op::multiple}});
    return named(ops, name, "kernel");
}

// A whole number as a size; a size that this machine cannot count to is one without a limit.
inline std::size_t size_from(std::int64_t number) {
    return std::in_range<std::size_t>(number) ? static_cast<std::size_t>(number) : kNoLimit;
}

template <Settings S>
Loss loss_from(const S& settings, std::string_view task) {
    static constexpr auto kinds =
        std::to_array<std::pair<std::string_view, LossKind>>({{"Hinge", LossKind::hinge},
                                                              {"Logistic", LossKind::logistic},
                                                              {"Squared", LossKind::squared},
                                                              {"EpsilonInsensitive", LossKind::epsilon_insensitive},
                                                              {"Huber", LossKind::huber},
                                                              {"Pinball", LossKind::pinball}});
    Loss loss;
    loss.kind = named(kinds, settings.text("loss"), "loss");
    if (settings.given("width")) loss.width = settings.number("width");
    if (settings.given("nu")) loss.nu = settings.number("nu");
    loss.strict = task == "novelty";
    return loss;
}

template <Settings S>
Rule rule_from(const S& settings, std::string_view task) {
    const std::string name = settings.text("rule");
    const bool regression = task == "regression";
    auto number = [&](const char* field) { return settings.number(field); };
    auto optional = [&](const char* field, double otherwise) {
        return settings.given(field) ? settings.number(field) : otherwise;
    };
    auto schedule = [&] { return settings.text("schedule") == "constant" ? Schedule::constant : Schedule::inv_sqrt; };
    if (name == "Perceptron") return Perceptron{};
    if (name == "SGD")
        return Sgd{{},         loss_from(settings, task), number("rate"), number("reg"),
                   schedule(), settings.flag("intercept")};
    if (name == "PassiveAggressive")
        return PassiveAggressive{
            {}, number("C"), static_cast<int>(settings.whole("variant")), number("epsilon"), regression};
    if (name == "FeasibleSet")
        return FeasibleSet{{}, optional("epsilon", 0.0), optional("radius", kInfinity), regression};
    if (name == "Implicit")
        return Implicit{{}, loss_from(settings, task), number("C"), number("rate"), number("reg"), schedule()};
    if (name == "Alma") {
        const double alpha = number("alpha");
        return Alma{{}, alpha, optional("B", std::sqrt(8.0) / alpha), optional("C", std::sqrt(2.0))};
    }
    if (name == "Romma") return Romma{{}, settings.flag("aggressive")};
    if (name == "MarginProjection") return MarginProjection{{}, settings.flag("squared")};
    if (name == "Adatron") return Adatron{{}, number("rate"), number("C")};
    if (name == "StepSizeAdaptation")
        return StepSizeAdaptation{{},
                                  loss_from(settings, task),
                                  number("rate"),
                                  number("reg"),
                                  number("meta_rate"),
                                  number("decay"),
                                  settings.text("form") == "linear"};
    if (name == "Density") return Density{{}, number("decay"), number("nu"), number("neighbours")};
    throw std::invalid_argument("unknown rule " + name);
}

template <Settings S>
Budget budget_from(const S& settings) {
    const std::string name = settings.text("budget");
    const BudgetBase base{settings.given("bytes") ? size_from(settings.whole("bytes")) : 0};
    auto size = [&] { return size_from(settings.whole("size")); };
    if (name == "Unbounded") return Unbounded{};
    if (name == "Window")
        return Window{{},
                      settings.given("steps") ? settings.whole("steps") : 0,
                      settings.given("growth") ? settings.number("growth") : 0.0};
    if (name == "DropOldest") return DropOldest{base, size()};
    if (name == "DropSmallest") return DropSmallest{base, size()};
    if (name == "DropRandom") return DropRandom{base, size(), settings.flag("uniform")};
    if (name == "Merge") return Merge{base, size()};
    if (name == "Forget") return Forget{{}, size(), settings.flag("basic")};
    if (name == "Project") return Project{{}, settings.number("tolerance"), settings.given("size") ? size() : kNoLimit};
    throw std::invalid_argument("unknown budget " + name);
}

}  // namespace gristmill
