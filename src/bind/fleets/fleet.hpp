// Conversions shared by the bindings of fleets.
#pragma once

#include "bind/bind.hpp"
#include "bind/learners/bound_learner.hpp"
#include "core/fleet/member_state.hpp"

namespace gristmill::bind {

std::vector<Node> nodes_from(nb::handle program);

inline Scaling scaling_from(const std::string& method, std::optional<std::uint64_t> warmup) {
    Scaling scaling;
    scaling.method = method == "standard" ? Scaling::Method::standard
                     : method == "minmax" ? Scaling::Method::minmax
                                          : Scaling::Method::none;
    if (warmup) scaling.warmup = *warmup;
    return scaling;
}

template <class T>
nb::dict pack_to_dict(MemberPack<T> pack, const MemberShape& shape) {
    const std::size_t n = pack.count(), total = pack.ids.size();
    nb::dict out;
    out["sizes"] = nb::cast(array_of(std::move(pack.sizes)));
    out["seen"] = nb::cast(array_of(std::move(pack.seen)));
    out["steps"] = nb::cast(array_of(std::move(pack.steps)));
    out["seeds"] = nb::cast(array_of(std::move(pack.seeds)));
    out["counters"] = nb::cast(array_of(std::move(pack.counters)));
    out["scale"] = nb::cast(array_of(std::move(pack.scale)));
    out["numbers"] = nb::cast(array_of(std::move(pack.numbers), {n, shape.numbers}));
    out["intercept"] = nb::cast(array_of(std::move(pack.intercept), {n, shape.outputs}));
    out["scaling"] = nb::cast(array_of(std::move(pack.scaling), {n, MemberPack<T>::scaling_numbers(shape)}));
    const auto give = [&](const char* name, auto& list) {
        if (!list.empty()) out[name] = nb::cast(array_of(std::move(list)));
    };
    if (shape.calibration())
        out["calibration"] = nb::cast(array_of(std::move(pack.calibration), {n, shape.calibration()}));
    give("likeness", pack.likeness);
    give("shares", pack.shares);
    give("selves", pack.selves);
    give("partners", pack.partners);
    give("stale", pack.stale);
    give("partner_rows", pack.partner_rows);
    out["ids"] = nb::cast(array_of(std::move(pack.ids)));
    out["labels"] = nb::cast(array_of(std::move(pack.labels)));
    out["coef"] = nb::cast(array_of(std::move(pack.coef), {total, shape.outputs}));
    out["points"] = nb::cast(array_of(std::move(pack.points), {total, shape.width}));
    return out;
}

template <class T>
MemberPack<T> pack_from_dict(nb::dict state) {
    MemberPack<T> pack;
    const auto read = [&]<class U>(const char* name, std::vector<U>& into) {
        nb::ndarray<const U, nb::c_contig, nb::device::cpu> array;
        if (!state.contains(name) || !nb::try_cast(state[name], array, false))
            throw nb::value_error(
                (std::string("the field '") + name + "' of a fleet is missing or has another type").c_str());
        into.assign(array.data(), array.data() + array.size());
    };
    read("sizes", pack.sizes);
    read("seen", pack.seen);
    read("steps", pack.steps);
    read("seeds", pack.seeds);
    read("counters", pack.counters);
    read("scale", pack.scale);
    read("numbers", pack.numbers);
    read("intercept", pack.intercept);
    read("ids", pack.ids);
    read("labels", pack.labels);
    read("coef", pack.coef);
    read("points", pack.points);
    // Optional fields, which members of some kinds do not have.
    const auto read_if = [&](const char* name, auto& into) {
        if (state.contains(name)) read(name, into);
    };
    read_if("scaling", pack.scaling);
    read_if("calibration", pack.calibration);
    read_if("likeness", pack.likeness);
    read_if("shares", pack.shares);
    read_if("selves", pack.selves);
    read_if("partners", pack.partners);
    read_if("stale", pack.stale);
    read_if("partner_rows", pack.partner_rows);
    return pack;
}

using SingleLearner = BoundLearner<Learner<Expansion>>;

// The methods by which members become learners alone and learners become members. fleet_of: the fleet of a core.
template <class T, class Core, class F>
void bind_members(nb::class_<Core>& c, F fleet_of) {
    c.def(
         "give_member",
         [fleet_of](const Core& core, nb::dict pack, SingleLearner& learner) {
             const auto one = pack_from_dict<T>(pack);
             MemberShape shape;
             std::size_t classes = 0;
             core.read([&] {
                 shape = fleet_of(core).shape();
                 classes = fleet_of(core).classes();
             });
             if (one.count() != 1 || one.intercept.size() != shape.outputs)
                 throw nb::value_error("the pack is not one member of this fleet");
             learner.write([&] { give_member(one, shape, classes, learner.learner); });
         },
         nb::arg("pack"), nb::arg("learner"),
         "Make a learner that has learned nothing what the only member of a pack is.")
        .def(
            "member_from",
            [fleet_of](const Core& core, const SingleLearner& learner, std::optional<Array1<double>> scaling) {
                MemberShape shape;
                core.read([&] { shape = fleet_of(core).shape(); });
                MemberPack<T> one;
                learner.read([&] {
                    one = member_from<T>(learner.learner, shape.width,
                                         scaling
                                             ? std::vector<double>(scaling->data(), scaling->data() + scaling->shape(0))
                                             : std::vector<double>());
                });
                shape.outputs = one.intercept.size();
                shape.numbers = one.numbers.size();
                return pack_to_dict(std::move(one), shape);
            },
            nb::arg("learner"), nb::arg("scaling").none(), "A learner as the only member of a pack.");
}

void bind_fleet(nb::module_& m);
void bind_keyed(nb::module_& m);

}  // namespace gristmill::bind
