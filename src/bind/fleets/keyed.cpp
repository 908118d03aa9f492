// Bindings of keyed fleets. Keys are an array of integers, or a list of bytes.
#include "core/keyed/keyed.hpp"
#include "bind/fleets/fleet.hpp"

namespace gristmill::bind {

namespace {

using Column = std::optional<Array1<double>>;

// Keys from Python; `keep` owns the viewed data.
struct KeyColumn {
    Keys keys;
    nb::object keep;
};

KeyColumn keys_from(nb::handle source, bool texts) {
    KeyColumn column{{}, nb::borrow(source)};
    column.keys.texts = texts;
    if (texts) {
        const auto list = nb::cast<nb::list>(source);
        column.keys.text.reserve(nb::len(list));
        for (const nb::handle item : list) {
            const auto bytes = nb::cast<nb::bytes>(item);
            column.keys.text.emplace_back(bytes.c_str(), bytes.size());
        }
    } else {
        const auto array = nb::cast<Array1<std::int64_t>>(source);
        column.keys.whole = {array.data(), array.shape(0)};
    }
    return column;
}

Spilled spilled_from(nb::list found) {
    Spilled out;
    for (const nb::handle item : found) {
        const auto pair = nb::cast<nb::tuple>(item);
        const auto key = nb::cast<nb::bytes>(pair[0]), record = nb::cast<nb::bytes>(pair[1]);
        out.emplace(std::string(key.c_str(), key.size()), std::string(record.c_str(), record.size()));
    }
    return out;
}

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

// Keys in memory, in the order of their records.
nb::object keys_of(const KeyTable& table) {
    nb::list texts;
    std::vector<std::int64_t> whole;
    for (std::uint32_t i = 0; i < table.records(); ++i) {
        if (!table.used(i)) continue;
        if (table.texts()) texts.append(bytes_of(table.key(i).name));
        else whole.push_back(static_cast<std::int64_t>(table.key(i).value));
    }
    if (table.texts()) return texts;
    return nb::cast(array_of(std::move(whole)));
}

template <class T>
class KeyedCore : public CoreLock {
  public:
    KeyedCore(nb::handle program, nb::handle rule, nb::handle budget, const std::string& task, std::size_t width,
              std::size_t max_keys, double ttl, bool spills, bool texts, std::uint64_t seed, bool one_seed,
              const std::string& scale, std::optional<std::uint64_t> warmup)
        : keyed(FleetParts{nodes_from(program), rule_from(rule, task), budget_from(budget), task_from(task), width,
                           scaling_from(scale, warmup)},
                KeyedSettings{max_keys, ttl, spills, texts, seed, one_seed}),
          texts(texts) {}

    KeyedChunk<T> chunk(const Keys& keys, const Array2<T>& rows, const Column& labels, const Column& weights,
                        const std::optional<Array2<double>>& offsets, const Column& times) const {
        const std::size_t count = keys.count();
        const auto fits = [&](const Column& column) { return !column || column->shape(0) == count; };
        if (rows.shape(0) != count || rows.shape(1) != keyed.width() || !fits(labels) || !fits(weights) ||
            !fits(times) || (offsets && offsets->shape(0) != count))
            throw nb::value_error("keys, rows, labels, weights and times must have one length");
        KeyedChunk<T> chunk{keys,
                            rows.data(),
                            labels ? labels->data() : nullptr,
                            weights ? weights->data() : nullptr,
                            offsets ? offsets->data() : nullptr,
                            offsets ? offsets->shape(1) : 0,
                            times ? times->data() : nullptr};
        return chunk;
    }

    Keyed<T> keyed;
    bool texts;
};

template <class T>
void bind_core(nb::module_& m, const char* name) {
    using Core = KeyedCore<T>;
    nb::class_<Core> c(m, name);
    bind_members<T>(c, [](const Core& core) -> const Keyed<T>& { return core.keyed; });
    c.def(nb::init<nb::handle, nb::handle, nb::handle, const std::string&, std::size_t, std::size_t, double, bool, bool,
                   std::uint64_t, bool, const std::string&, std::optional<std::uint64_t>>(),
          nb::arg("kernel"), nb::arg("rule"), nb::arg("budget"), nb::arg("task"), nb::arg("width"), nb::arg("max_keys"),
          nb::arg("ttl"), nb::arg("spills"), nb::arg("texts"), nb::arg("seed"), nb::arg("one_seed"),
          nb::arg("scale") = "none", nb::arg("warmup") = nb::none())
        .def(
            "learn",
            [](Core& c, nb::object keys, Array2<T> rows, Column labels, Column weights,
               std::optional<Array2<double>> offsets, Column times, std::size_t classes, nb::list found,
               bool want) -> nb::object {
                const KeyColumn column = keys_from(keys, c.texts);
                const auto chunk = c.chunk(column.keys, rows, labels, weights, offsets, times);
                const Spilled spilled = spilled_from(found);
                std::vector<double> scores;
                std::size_t outputs = 0;
                c.write([&] {
                    c.keyed.check(chunk);
                    c.keyed.learn(chunk, classes, spilled, want ? &scores : nullptr);
                    outputs = c.keyed.outputs();
                });
                return want ? nb::cast(array_of(std::move(scores), {chunk.count(), outputs})) : nb::none();
            },
            nb::arg("keys"), nb::arg("rows"), nb::arg("labels").none(), nb::arg("weights").none(),
            nb::arg("offsets").none(), nb::arg("times").none(), nb::arg("classes"), nb::arg("found"),
            nb::arg("want_scores"))
        .def(
            "score",
            [](const Core& c, nb::object keys, Array2<T> rows, std::optional<Array2<double>> offsets, Column times,
               nb::list found, bool shares) {
                const KeyColumn column = keys_from(keys, c.texts);
                const auto chunk = c.chunk(column.keys, rows, {}, {}, offsets, times);
                const Spilled spilled = spilled_from(found);
                std::vector<double> scores;
                std::size_t outputs = 0, classes = 0;
                c.read([&] {
                    c.keyed.check(chunk);
                    outputs = c.keyed.outputs();
                    classes = c.keyed.classes();
                    if (shares) outputs = std::max<std::size_t>(classes, 1);
                    scores.resize(chunk.count() * outputs);
                    c.keyed.score(chunk, spilled, shares, scores.data());
                });
                return nb::make_tuple(array_of(std::move(scores), {chunk.count(), outputs}), classes);
            },
            nb::arg("keys"), nb::arg("rows"), nb::arg("offsets").none(), nb::arg("times").none(), nb::arg("found"),
            nb::arg("shares") = false)
        .def(
            "check",
            [](const Core& c, nb::object keys, Array2<T> rows) {
                const KeyColumn column = keys_from(keys, c.texts);
                const auto chunk = c.chunk(column.keys, rows, {}, {}, {}, {});
                c.read([&] { c.keyed.check(chunk); });
            },
            nb::arg("keys"), nb::arg("rows"))
        .def(
            "may_fail",
            [](const Core& c, nb::object keys, Array2<T> rows, Column weights) {
                const KeyColumn column = keys_from(keys, c.texts);
                const auto chunk = c.chunk(column.keys, rows, {}, weights, {}, {});
                return c.read_with_gil([&] { return c.keyed.may_fail(chunk); });
            },
            nb::arg("keys"), nb::arg("rows"), nb::arg("weights").none())
        .def("set_now", [](Core& c, double now) { c.write([&] { c.keyed.set_now(now); }); })
        .def("missing",
             [](const Core& c, nb::object keys) {
                 const KeyColumn column = keys_from(keys, c.texts);
                 return c.read_with_gil([&] {
                     nb::list out;
                     for (const auto& text : c.keyed.missing(column.keys)) out.append(bytes_of(text));
                     return out;
                 });
             })
        .def("known",
             [](const Core& c, nb::object keys, nb::list found) {
                 const KeyColumn column = keys_from(keys, c.texts);
                 const Spilled spilled = spilled_from(found);
                 return c.read_with_gil([&] { return array_of(c.keyed.known(column.keys, spilled)); });
             })
        .def("evicted",
             [](const Core& c) {
                 return c.read_with_gil([&] {
                     nb::list out, expired_keys;
                     for (const auto& [key, record] : c.keyed.evicted())
                         out.append(nb::make_tuple(bytes_of(key), c.keyed.last_of(record), bytes_of(record)));
                     for (const auto& key : c.keyed.expired_keys()) expired_keys.append(nb::make_tuple(bytes_of(key)));
                     return nb::make_tuple(out, expired_keys);
                 });
             })
        .def(
            "keep", [](Core& c, std::uint64_t expired) { c.write([&] { c.keyed.keep(expired); }); },
            nb::arg("expired") = 0)
        .def("rollback",
             [](Core& c) {
                 bool undone = false;
                 c.write([&] { undone = c.keyed.rollback(); });
                 return undone;
             })
        .def(
            "configure",
            [](Core& c, std::size_t max_keys, double ttl, bool spills) {
                c.write([&] { c.keyed.configure(max_keys, ttl, spills); });
            },
            nb::arg("max_keys"), nb::arg("ttl"), nb::arg("spills"))
        .def("set_counts", [](Core& c, std::uint64_t dropped,
                              std::uint64_t expired) { c.write([&] { c.keyed.set_counts(dropped, expired); }); })
        .def("forget",
             [](Core& c, nb::object keys) {
                 const KeyColumn column = keys_from(keys, c.texts);
                 c.write([&] { c.keyed.forget(column.keys); });
             })
        .def("keys", [](const Core& c) { return c.read_with_gil([&] { return keys_of(c.keyed.table()); }); })
        .def("residents",
             [](const Core& c) {
                 return c.read_with_gil([&] {
                     const KeyTable& table = c.keyed.table();
                     std::vector<std::int64_t> slots;
                     std::vector<std::uint8_t> touched;
                     for (std::uint32_t i = 0; i < table.records(); ++i)
                         if (table.used(i)) {
                             slots.push_back(i);
                             touched.push_back(table.state(i) == 3);
                         }
                     std::vector<double> last;
                     const nb::object keys = keys_of(table);
                     nb::dict out =
                         pack_to_dict(c.keyed.members(keys_from(keys, c.texts).keys, {}, last), c.keyed.shape());
                     out["last"] = nb::cast(array_of(std::move(last)));
                     out["slots"] = nb::cast(array_of(std::move(slots)));
                     out["touched"] = nb::cast(array_of(std::move(touched)));
                     return nb::make_tuple(keys, out, table.hand(), c.keyed.now(), c.keyed.classes(), c.keyed.dropped(),
                                           c.keyed.expired());
                 });
             })
        .def("members",
             [](const Core& c, nb::object keys, nb::list found) {
                 const KeyColumn column = keys_from(keys, c.texts);
                 const Spilled spilled = spilled_from(found);
                 return c.read_with_gil([&] {
                     std::vector<double> last;
                     nb::dict out = pack_to_dict(c.keyed.members(column.keys, spilled, last), c.keyed.shape());
                     out["last"] = nb::cast(array_of(std::move(last)));
                     return out;
                 });
             })
        .def("set_members",
             [](Core& c, nb::object keys, nb::dict state, Array1<double> last, nb::list found) {
                 const KeyColumn column = keys_from(keys, c.texts);
                 const auto pack = pack_from_dict<T>(state);
                 const Spilled spilled = spilled_from(found);
                 c.write([&] { c.keyed.set_members(column.keys, pack, {last.data(), last.shape(0)}, spilled); });
             })
        .def("restore",
             [](Core& c, nb::object keys, nb::dict state, Array1<double> last, Array1<std::int64_t> slots,
                Array1<std::uint8_t> touched, std::size_t hand) {
                 const KeyColumn column = keys_from(keys, c.texts);
                 const auto pack = pack_from_dict<T>(state);
                 const KeyOrder order{{slots.data(), slots.shape(0)}, {touched.data(), touched.shape(0)}, hand};
                 c.write([&] { c.keyed.restore(column.keys, pack, {last.data(), last.shape(0)}, order); });
             })
        .def("add_classes", [](Core& c, std::size_t classes) { c.write([&] { c.keyed.add_classes(classes); }); })
        .def_prop_ro("changes", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.changes(); }); })
        .def_prop_ro("now", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.now(); }); })
        .def_prop_ro("live", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.live(); }); })
        .def_prop_ro("stored", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.stored(); }); })
        .def_prop_ro("dropped", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.dropped(); }); })
        .def_prop_ro("expired", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.expired(); }); })
        .def_prop_ro("width", [](const Core& c) { return c.keyed.width(); })
        .def_prop_ro("classes", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.classes(); }); })
        .def_prop_ro("is_single", [](const Core&) { return sizeof(T) == sizeof(float); })
        .def_prop_ro("memory_bytes", [](const Core& c) { return c.read_with_gil([&] { return c.keyed.bytes(); }); });
}

}  // namespace

void bind_keyed(nb::module_& m) {
    bind_core<double>(m, "KeyedDouble");
    bind_core<float>(m, "KeyedSingle");
}

}  // namespace gristmill::bind
