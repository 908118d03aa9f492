// Kernels, rules and budgets from their Python values.
#include <cmath>
#include <map>

#include "bind/bind.hpp"
#include "bind/fleet.hpp"
#include "core/expansion/expansion.hpp"

namespace gristmill::bind {

namespace {

Loss loss_from(nb::dict spec, const std::string& task) {
    static const std::map<std::string, LossKind> kinds = {{"Hinge", LossKind::hinge},
                                                          {"Logistic", LossKind::logistic},
                                                          {"Squared", LossKind::squared},
                                                          {"EpsilonInsensitive", LossKind::epsilon_insensitive},
                                                          {"Huber", LossKind::huber},
                                                          {"Pinball", LossKind::pinball}};
    Loss loss;
    loss.kind = kinds.at(get<std::string>(spec, "loss"));
    if (spec.contains("width")) loss.width = get<double>(spec, "width");
    if (spec.contains("nu")) loss.nu = get<std::optional<double>>(spec, "nu");
    loss.strict = task == "novelty";
    return loss;
}

double number_of(nb::handle step, const char* name) {
    const nb::object value = step.attr(name);
    double number = 0;
    if (!nb::try_cast<double>(value, number))
        throw nb::type_error(("the rule must return a Step or None; its " + std::string(name) + " is " +
                              nb::cast<std::string>(nb::repr(value)).substr(0, 80)).c_str());
    return number;
}

// A Python rule: callable with a Trial, returning a Step or None.
class PythonRule final : public ForeignRule {
  public:
    explicit PythonRule(nb::handle rule) : rule_(rule) {
        const auto module = nb::module_::import_("gristmill.rules");
        trial_ = module.attr("Trial");
    }
    ~PythonRule() override {
        nb::gil_scoped_acquire gil;
        trial_.reset();
    }
    Step propose(const Trial& t) override {
        nb::gil_scoped_acquire gil;
        const nb::object step = rule_(trial_(t.score, t.label, t.self, t.step, t.weight, t.norm2));
        if (step.is_none()) return {};
        for (const char* name : {"coefficient", "shrink", "intercept", "radius"})
            if (!nb::hasattr(step, name))
                throw nb::type_error(("the rule must return a Step or None, got " +
                                      nb::cast<std::string>(nb::repr(step)).substr(0, 80)).c_str());
        return {.coefficient = number_of(step, "coefficient"), .shrink = number_of(step, "shrink"),
                .intercept = number_of(step, "intercept"), .radius = number_of(step, "radius")};
    }

  private:
    nb::handle rule_;  // the learner's owner keeps it alive
    nb::object trial_;
};

// A Python budget: victim(stored) -> position, None or -1.
class PythonBudget final : public ForeignBudget {
  public:
    explicit PythonBudget(nb::handle budget) : budget_(budget) {
        stored_ = nb::module_::import_("gristmill.budgets").attr("Stored");
    }
    ~PythonBudget() override {
        nb::gil_scoped_acquire gil;
        stored_.reset();
    }
    Entry choose(const Expansion& f, const Newcomer& newcomer) override {
        nb::gil_scoped_acquire gil;
        nb::list ids, coef;
        std::vector<double> coefs;
        for (std::size_t s = 0; s < f.size(); ++s) {
            ids.append(f.points().id(s));
            for (std::size_t o = 0; o < f.outputs(); ++o) coefs.push_back(f.coef(s, o) * newcomer.shrink);
        }
        const nb::object choice = budget_.attr("victim")(stored_(
            ids, array_of(std::move(coefs), {f.size(), f.outputs()}), newcomer.id,
            array_of(std::vector<double>(newcomer.coefs.begin(), newcomer.coefs.end()))));
        if (choice.is_none()) return {};
        std::int64_t slot = 0;
        if (!nb::try_cast<std::int64_t>(choice, slot))
            throw nb::type_error(("the budget's victim() must return None, -1 or a position, got " +
                                  nb::cast<std::string>(nb::repr(choice)).substr(0, 80)).c_str());
        if (slot == -1) return {Entry::Kind::refuse};
        if (slot < 0 || static_cast<std::size_t>(slot) >= f.size())
            throw nb::index_error(("the budget's victim() must return None, -1 or a position below " +
                                   std::to_string(f.size()) + ", got " + std::to_string(slot)).c_str());
        return Entry::into(static_cast<std::size_t>(slot));
    }

  private:
    nb::handle budget_;  // the learner's owner keeps it alive
    nb::object stored_;
};

}  // namespace

std::vector<Node> nodes_from(nb::handle program) {
    static const std::map<std::string, Op> ops = {
        {"linear", Op::linear}, {"polynomial", Op::polynomial}, {"gaussian", Op::gaussian},
        {"laplacian", Op::laplacian}, {"exponential", Op::exponential}, {"vovk", Op::vovk},
        {"sigmoid", Op::sigmoid}, {"manhattan", Op::manhattan}, {"squared_euclidean", Op::squared_euclidean},
        {"normalized", Op::normalized}, {"sum", Op::sum}, {"product", Op::product}, {"multiple", Op::multiple}};
    std::vector<Node> nodes;
    for (const nb::handle item : program) {
        const auto node = nb::cast<nb::tuple>(item);
        nodes.push_back({ops.at(nb::cast<std::string>(node[0])), nb::cast<std::int32_t>(node[1]),
                         nb::cast<std::int32_t>(node[2]), nb::cast<std::int32_t>(node[3]), nb::cast<double>(node[4]),
                         nb::cast<double>(node[5])});
    }
    return nodes;
}

Kernel kernel_from(nb::handle program) { return Kernel(nodes_from(program)); }

Task task_from(const std::string& name) {
    static const std::map<std::string, Task> tasks = {
        {"classification", Task::classification}, {"regression", Task::regression}, {"novelty", Task::novelty}};
    return tasks.at(name);
}

Rule rule_from(nb::handle source, const std::string& task) {
    if (!nb::isinstance<nb::dict>(source)) {
        const bool norm = nb::hasattr(source, "needs_norm") && nb::cast<bool>(source.attr("needs_norm"));
        return Foreign{{}, std::make_shared<PythonRule>(source), norm};
    }
    const auto spec = nb::borrow<nb::dict>(source);
    const auto name = get<std::string>(spec, "rule");
    const bool regression = task == "regression";
    auto number = [&](const char* field) { return get<double>(spec, field); };
    auto optional = [&](const char* field, double otherwise) {
        return get<std::optional<double>>(spec, field).value_or(otherwise);
    };
    if (name == "Perceptron") return Perceptron{};
    if (name == "SGD") {
        const auto schedule =
            get<std::string>(spec, "schedule") == "constant" ? Schedule::constant : Schedule::inv_sqrt;
        return Sgd{{}, loss_from(spec, task), number("rate"), number("reg"), schedule, get<bool>(spec, "intercept")};
    }
    if (name == "PassiveAggressive")
        return PassiveAggressive{{}, number("C"), get<int>(spec, "variant"), number("epsilon"), regression};
    if (name == "FeasibleSet")
        return FeasibleSet{{}, optional("epsilon", 0.0), optional("radius", kInfinity), regression};
    if (name == "Implicit") return Implicit{{}, loss_from(spec, task), number("C"), number("rate"), number("reg")};
    if (name == "Alma") {
        const double alpha = number("alpha");
        return Alma{{}, alpha, optional("B", std::sqrt(8.0) / alpha), optional("C", std::sqrt(2.0))};
    }
    if (name == "Romma") return Romma{{}, get<bool>(spec, "aggressive")};
    if (name == "MarginProjection") return MarginProjection{{}, get<bool>(spec, "squared")};
    if (name == "Adatron") return Adatron{{}, number("rate"), number("C")};
    if (name == "StepSizeAdaptation")
        return StepSizeAdaptation{{}, loss_from(spec, task), number("rate"), number("reg"), number("meta_rate"),
                                  number("decay"), get<std::string>(spec, "form") == "linear"};
    if (name == "Density") return Density{{}, number("decay"), number("nu"), number("neighbours")};
    throw nb::value_error(("unknown rule " + name).c_str());
}

Budget budget_from(nb::handle source) {
    if (!nb::isinstance<nb::dict>(source))
        return ForeignBudgetPart{{}, std::make_shared<PythonBudget>(source)};
    const auto spec = nb::borrow<nb::dict>(source);
    const auto name = get<std::string>(spec, "budget");
    const BudgetBase base{spec.contains("bytes") ? get<std::size_t>(spec, "bytes") : 0};
    if (name == "Unbounded") return Unbounded{};
    if (name == "Window")
        return Window{{}, get<std::optional<std::int64_t>>(spec, "steps").value_or(0),
                      get<std::optional<double>>(spec, "growth").value_or(0)};
    if (name == "DropOldest") return DropOldest{base, get<std::size_t>(spec, "size")};
    if (name == "DropSmallest") return DropSmallest{base, get<std::size_t>(spec, "size")};
    if (name == "DropRandom") return DropRandom{base, get<std::size_t>(spec, "size"), get<bool>(spec, "uniform")};
    if (name == "Merge") return Merge{base, get<std::size_t>(spec, "size")};
    if (name == "Forget") return Forget{{}, get<std::size_t>(spec, "size"), get<bool>(spec, "basic")};
    if (name == "Project")
        return Project{{}, get<double>(spec, "tolerance"), get<std::optional<std::size_t>>(spec, "size").value_or(kNoLimit)};
    throw nb::value_error(("unknown budget " + name).c_str());
}

}  // namespace gristmill::bind
