// A member of a fleet as a learner alone, and back, over the fields that a learner saves.
//
// A fleet keeps no prediction intervals: how far a member's numbers may be off is learned when it learns alone.
#pragma once

#include "core/expansion/expansion.hpp"
#include "core/fleet/pack.hpp"

namespace gristmill {

// The fields of a learner by name.
class MemberFields {
  public:
    explicit MemberFields(Archive& archive) : fields_(archive.fields) {}

    bool has(const std::string& name) const { return find(name) != nullptr; }
    template <class T>
    void set(const std::string& name, std::vector<T> values, std::vector<std::size_t> shape = {}) {
        if (shape.empty()) shape = {values.size()};
        Field field{std::move(values), std::move(shape)};
        if (Field* old = find(name)) *old = std::move(field);
        else fields_.emplace_back(name, std::move(field));
    }
    template <class T>
    const std::vector<T>& get(const std::string& name) const {
        const Field* field = find(name);
        const auto* list = field ? std::get_if<std::vector<T>>(&field->values) : nullptr;
        if (!list)
            throw std::invalid_argument("the saved field '" + name + "' is missing or has another type of number");
        return *list;
    }
    // Fields of the rule, in the order in which it names them.
    std::vector<std::string> names_of_rule() const {
        std::vector<std::string> names;
        for (const auto& [name, field] : fields_)
            if (name.starts_with("rule.")) names.push_back(name);
        return names;
    }
    void drop(const std::string& name) {
        std::erase_if(fields_, [&](const auto& field) { return field.first == name; });
    }

  private:
    Field* find(const std::string& name) const {
        for (auto& [key, field] : fields_)
            if (key == name) return &field;
        return nullptr;
    }
    std::vector<std::pair<std::string, Field>>& fields_;
};

// Makes a learner, which has learned nothing and has the parts of the fleet, what the only member of a pack is.
template <class T>
void give_member(const MemberPack<T>& one, const MemberShape& shape, std::size_t classes, Learner<Expansion>& learner) {
    const std::size_t n = one.ids.size(), outputs = shape.outputs;
    Archive archive;
    learner.visit(archive);
    MemberFields fields(archive);
    const auto unsigned_of = [](std::int64_t value) {
        return std::vector<std::uint64_t>{static_cast<std::uint64_t>(value)};
    };
    fields.set("seen", unsigned_of(one.seen[0]));
    fields.set("steps", unsigned_of(one.steps[0]));
    if (shape.random) {
        fields.set("random_seed", one.seeds);
        fields.set("random_counter", one.counters);
    }
    fields.set("classes", std::vector<std::uint64_t>{classes});
    const auto rule = fields.names_of_rule();
    for (std::size_t i = 0; i < rule.size(); ++i) fields.set(rule[i], std::vector<double>{one.numbers[i]});
    fields.set("intercept", one.intercept);
    fields.set("intercept_sum", std::vector<double>(outputs));
    fields.drop("intervals");
    if (shape.calibration()) {
        constexpr std::ptrdiff_t kShared = Calibration::kShared;
        const auto first = one.calibration.begin(), offsets = first + kShared,
                   curvatures = offsets + static_cast<std::ptrdiff_t>(outputs);
        fields.set("calibration", std::vector<double>(first, offsets));
        fields.set("calibration_offsets", std::vector<double>(offsets, curvatures));
        fields.set("calibration_curvatures", std::vector<double>(curvatures, one.calibration.end()));
    }
    std::vector<double> coefs(n * outputs);
    for (std::size_t s = 0; s < n; ++s)
        for (std::size_t o = 0; o < outputs; ++o) coefs[o * n + s] = one.coef[s * outputs + o];
    fields.set("coef", std::move(coefs), {outputs, n});
    fields.set("ids", one.ids);
    fields.set("labels", one.labels);
    fields.set("came_sparse", std::vector<std::uint8_t>(n));
    fields.set("scale", one.scale);
    if (shape.merges) {
        fields.set("partners", one.partners);
        fields.set("likeness", one.likeness);
        fields.set("shares", one.shares);
        fields.set("selves", one.selves);
        fields.set("stale", one.stale);
        fields.set("partner_rows", one.partner_rows);
    }
    archive.loads = true;
    archive.points = Batch(DenseRows<T>{one.points.data(), n, shape.width});
    learner.check(*archive.points);
    learner.visit(archive);
}

// A learner as the only member of a pack; scaling: the numbers of the scaling in front of it, if there is one. The pack is
// not checked against a fleet.
template <class T>
MemberPack<T> member_from(const Learner<Expansion>& learner, std::size_t width, std::vector<double> scaling) {
    const Expansion& f = learner.hypothesis();
    const Points& points = f.points();
    const auto* dense = dynamic_cast<const DensePoints<T>*>(&points);
    const bool other =
        dynamic_cast<const DensePoints<float>*>(&points) || dynamic_cast<const DensePoints<double>*>(&points);
    if ((!dense && !other) || points.width() != width)
        throw std::invalid_argument("the learner does not have dense points of " + std::to_string(width) + " features");
    if (!dense)
        throw std::invalid_argument(std::string("the learner keeps ") + (sizeof(T) == 8 ? "float32" : "float64") +
                                    ", and this fleet does not");
    Archive archive;
    const_cast<Learner<Expansion>&>(learner).visit(archive);  // saving does not modify the learner
    const MemberFields fields(archive);
    const std::size_t n = f.size();
    MemberPack<T> one;
    one.sizes = {static_cast<std::int64_t>(n)};
    one.seen = {static_cast<std::int64_t>(fields.get<std::uint64_t>("seen")[0])};
    one.steps = {static_cast<std::int64_t>(fields.get<std::uint64_t>("steps")[0])};
    one.seeds = fields.get<std::uint64_t>("random_seed");
    one.counters = fields.get<std::uint64_t>("random_counter");
    one.scale = fields.get<double>("scale");
    for (const auto& name : fields.names_of_rule()) one.numbers.push_back(fields.get<double>(name)[0]);
    one.intercept = fields.get<double>("intercept");
    one.scaling = std::move(scaling);
    if (fields.has("calibration"))
        for (const char* name : {"calibration", "calibration_offsets", "calibration_curvatures"}) {
            const auto& part = fields.get<double>(name);
            one.calibration.insert(one.calibration.end(), part.begin(), part.end());
        }
    one.ids = fields.get<std::int64_t>("ids");
    one.labels = fields.get<double>("labels");
    const std::size_t outputs = one.intercept.size();
    const auto& coefs = fields.get<double>("coef");
    one.coef.resize(n * outputs);
    for (std::size_t s = 0; s < n; ++s)
        for (std::size_t o = 0; o < outputs; ++o) one.coef[s * outputs + o] = coefs[o * n + s];
    one.points.resize(n * width);
    for (std::size_t s = 0; s < n; ++s) dense->copy_out(s, one.points.data() + s * width);
    if (fields.has("partners")) {
        one.partners = fields.get<std::int64_t>("partners");
        one.likeness = fields.get<double>("likeness");
        one.shares = fields.get<double>("shares");
        one.selves = fields.get<double>("selves");
        one.stale = fields.get<std::uint8_t>("stale");
        one.partner_rows = fields.get<std::uint64_t>("partner_rows");
    }
    return one;
}

}  // namespace gristmill
