// Kernels, rules and budgets from their Python values.
#include <map>

#include "bind/bind.hpp"
#include "bind/fleets/fleet.hpp"
#include "core/expansion/expansion.hpp"
#include "core/parts/named.hpp"

namespace gristmill::bind {

namespace {

// Settings from a Python dict; None means not given.
class DictSettings {
  public:
    explicit DictSettings(nb::dict values) : values_(values) {}
    bool given(const char* name) const { return values_.contains(name) && !values_[name].is_none(); }
    std::string text(const char* name) const { return get<std::string>(values_, name); }
    double number(const char* name) const { return get<double>(values_, name); }
    std::int64_t whole(const char* name) const { return get<std::int64_t>(values_, name); }
    bool flag(const char* name) const { return get<bool>(values_, name); }

  private:
    nb::dict values_;
};

double number_of(nb::handle step, const char* name) {
    const nb::object value = step.attr(name);
    double number = 0;
    if (!nb::try_cast<double>(value, number))
        throw nb::type_error(("the rule must return a Step or None; its " + std::string(name) + " is " +
                              nb::cast<std::string>(nb::repr(value)).substr(0, 80))
                                 .c_str());
    return number;
}

// A rule written in Python: called with a Trial, returns a Step or None.
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
                throw nb::type_error(
                    ("the rule must return a Step or None, got " + nb::cast<std::string>(nb::repr(step)).substr(0, 80))
                        .c_str());
        return {.coefficient = number_of(step, "coefficient"),
                .shrink = number_of(step, "shrink"),
                .intercept = number_of(step, "intercept"),
                .radius = number_of(step, "radius")};
    }

  private:
    nb::handle rule_;  // kept alive by the owner of the learner
    nb::object trial_;
};

// A budget written in Python: victim(stored) -> position, None or -1.
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
        const nb::object choice = budget_.attr("victim")(
            stored_(ids, array_of(std::move(coefs), {f.size(), f.outputs()}), newcomer.id,
                    array_of(std::vector<double>(newcomer.coefs.begin(), newcomer.coefs.end()))));
        if (choice.is_none()) return {};
        std::int64_t slot = 0;
        if (!nb::try_cast<std::int64_t>(choice, slot))
            throw nb::type_error(("the budget's victim() must return None, -1 or a position, got " +
                                  nb::cast<std::string>(nb::repr(choice)).substr(0, 80))
                                     .c_str());
        if (slot == -1) return {Entry::Kind::refuse};
        if (slot < 0 || static_cast<std::size_t>(slot) >= f.size())
            throw nb::index_error(("the budget's victim() must return None, -1 or a position below " +
                                   std::to_string(f.size()) + ", got " + std::to_string(slot))
                                      .c_str());
        return Entry::into(static_cast<std::size_t>(slot));
    }

  private:
    nb::handle budget_;  // kept alive by the owner of the learner
    nb::object stored_;
};

}  // namespace

std::vector<Node> nodes_from(nb::handle program) {
    std::vector<Node> nodes;
    for (const nb::handle item : program) {
        const auto node = nb::cast<nb::tuple>(item);
        nodes.push_back({op_named(nb::cast<std::string>(node[0])), nb::cast<std::int32_t>(node[1]),
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
    return gristmill::rule_from(DictSettings(nb::borrow<nb::dict>(source)), task);
}

Budget budget_from(nb::handle source) {
    if (!nb::isinstance<nb::dict>(source)) return ForeignBudgetPart{{}, std::make_shared<PythonBudget>(source)};
    return gristmill::budget_from(DictSettings(nb::borrow<nb::dict>(source)));
}

}  // namespace gristmill::bind
