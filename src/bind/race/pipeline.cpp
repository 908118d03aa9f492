// Bindings of the table and the scale of targets, and single events through table, scaling and learner without Python.
#include "bind/cells.hpp"
#include "bind/learners/bound_learner.hpp"
#include "core/pipeline/target_scale.hpp"

namespace gristmill::bind {

namespace {

Gaps gaps_from(const std::string& name) {
    if (name == "fill") return Gaps::mean;
    if (name == "raise") return Gaps::error;
    if (name == "zero") return Gaps::zero;
    throw nb::value_error(("no way to treat missing values: " + name).c_str());
}

Table::Kind kind_from(const std::string& name) {
    if (name == "number") return Table::Kind::number;
    if (name == "boolean") return Table::Kind::boolean;
    if (name == "category") return Table::Kind::category;
    return Table::Kind::other;
}

Table::Event& scratch() {
    thread_local Table::Event event;
    return event;
}

// The seqlock of Python: its lock is held while this object lives, and readers take what they found as torn in the meantime. What
// the end needs is made at the beginning, so that a lack of memory cannot keep it from ending.
class Writing {
  public:
    explicit Writing(const nb::object& seqlock) : seqlock_(seqlock) {
        if (seqlock_.is_none()) return;
        const nb::object lock = seqlock_.attr("lock");
        release_ = lock.attr("release");
        lock.attr("acquire")();
    }
    Writing(const Writing&) = delete;
    ~Writing() {
        if (after_.is_valid()) seqlock_.attr("moment") = after_;
        if (release_.is_valid()) release_();
    }
    void begin() {
        if (seqlock_.is_none()) return;
        const auto before = nb::cast<std::uint64_t>(seqlock_.attr("moment"));
        nb::object after = nb::int_(before + 2);
        seqlock_.attr("moment") = nb::int_(before + 1);
        after_ = std::move(after);
    }

  private:
    const nb::object& seqlock_;
    nb::object release_, after_;
};

// Passes single events through a table, a scaling and, if its core takes them, a learner.
//
// It refers to objects that chunks change: their owner closes it before such a change and makes another one afterwards. For an
// event that needs the path of chunks, every method returns False, None or NotImplemented and changes nothing.
class EventPipeline {
  public:
    EventPipeline(nb::object table, nb::object scaling, std::vector<double> weights, std::size_t width, nb::dict names,
                  nb::set left_out, nb::object seqlock, std::uint64_t quiet)
        : owners_{table, scaling}, table_(nb::cast<Table&>(table)),
          rows_(table_, scaling.is_none() ? nullptr : &nb::cast<ColumnScaling&>(scaling), std::move(weights), width),
          reader_(std::move(names), std::move(left_out)), seqlock_(std::move(seqlock)), quiet_(quiet),
          row_(array_of(std::vector<double>(width))) {}

    // task: classes, numbers, or novelty. weights: of the codes. largest: of a target. target: the scale of targets, or None.
    void connect(nb::object core, const std::string& task, nb::dict codes, std::vector<double> weights, double largest,
                 nb::object target) {
        owners_.push_back(core);
        owners_.push_back(target);
        core_ = &nb::cast<EventCore&>(core);
        target_ = target.is_none() ? nullptr : &nb::cast<TargetScale&>(target);
        task_ = task == "classes" ? Task::classification : task == "numbers" ? Task::regression : Task::novelty;
        codes_ = std::move(codes);
        weights_ = std::move(weights);
        largest_ = largest;
    }
    // How scores are shown: the classes in their order outside, the column of each, and the sign of a single score.
    void answer(nb::list classes, nb::list labels, std::vector<std::size_t> columns, double sign) {
        classes_ = std::move(classes);
        labels_ = std::move(labels);
        columns_ = std::move(columns);
        sign_ = sign;
        answers_ = true;
    }
    // scaler: an object whose `position` counts the events that are learned.
    void count_for(nb::object scaler) { counted_ = std::move(scaler); }
    void close() { closed_ = true; }

    bool learn_one(nb::handle x, nb::handle y) {
        double label = 0, weight = 1;
        if (!is_open() || !core_ || !label_of(y, label, weight)) return false;
        Writing writing(seqlock_);
        if (!is_open()) return false;
        double inside = label;
        if (target_) {
            if (!target_->is_known() || target_->due() < 2) return false;
            inside = target_->inside(label);
        }
        writing.begin();
        const double* row = nullptr;
        try {
            row = take(x);
            if (!row) return false;
            core_->learn_event({row, rows_.width()}, inside, weight);
        } catch (...) {
            if (row) rows_.rollback();
            return false;  // the path of chunks raises the error
        }
        if (target_) target_->take(label);
        if (!counted_.is_none()) counted_.attr("position") = nb::cast<std::uint64_t>(counted_.attr("position")) + 1;
        --quiet_;
        return true;
    }

    // The same in two steps, for a learner that is not such a core: the row, or None; and its undo. The caller holds the lock.
    nb::object learn(nb::handle x) {
        if (!is_open()) return nb::none();
        const double* row = nullptr;
        try {
            row = take(x);
        } catch (const std::exception&) {
            return nb::none();
        }
        if (!row) return nb::none();
        std::copy_n(row, rows_.width(), row_.data());
        --quiet_;
        return nb::cast(row_);
    }
    void rollback() {
        rows_.rollback();
        ++quiet_;
    }
    // The row of one event by what is known now, or None.
    nb::object row_of(nb::handle x) const {
        const double* row = closed_ ? nullptr : encoded(x);
        return row ? nb::cast(array_of(std::vector<double>(row, row + rows_.width()))) : nb::none();
    }

    nb::object score_one(nb::handle x) const {
        if (!score(x)) return unknown();
        const std::vector<double>& scores = found();
        if (scores.size() == 1) return nb::float_(shown(scores[0]));
        std::vector<double> ordered;
        for (const std::size_t c : columns_) ordered.push_back(scores[c]);
        return nb::cast(array_of(std::move(ordered)));
    }
    nb::object predict_one(nb::handle x) const {
        if (!score(x)) return unknown();
        const std::vector<double>& scores = found();
        if (task_ == Task::novelty) return nb::int_(scores[0] < 0 ? -1 : 1);
        if (task_ == Task::regression) return nb::float_(shown(scores[0]));
        const std::size_t best = best_of(scores);
        return best < columns_.size() ? nb::borrow(classes_[best]) : unknown();
    }
    nb::object predict_proba_one(nb::handle x) const {
        if (!score(x) || task_ != Task::classification) return unknown();
        thread_local std::vector<double> shares;
        const std::size_t best = best_of(found());
        if (best >= columns_.size() || !core_->share_event(found(), shares) || shares.size() != columns_.size())
            return unknown();
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (c != best && !(shares[columns_[c]] <= shares[columns_[best]] * (1 - 1e-9))) return unknown();
        nb::dict out;
        for (std::size_t c = 0; c < columns_.size(); ++c) out[labels_[c]] = nb::float_(shares[columns_[c]]);
        return out;
    }

  private:
    bool is_open() const { return !closed_ && quiet_ > 0; }
    static nb::object unknown() { return nb::borrow(Py_NotImplemented); }
    static std::vector<double>& found() {
        thread_local std::vector<double> scores;
        return scores;
    }
    double shown(double score) const {
        if (task_ == Task::classification) return sign_ * score;
        return target_ ? target_->outside(score) : score;
    }
    // The place of the best class in their order outside; none if a score is not a number.
    std::size_t best_of(const std::vector<double>& scores) const {
        if (scores.size() == 1) return sign_ * scores[0] >= 0 ? columns_.size() - 1 : 0;
        std::size_t best = 0;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (std::isnan(scores[columns_[c]])) return columns_.size();
            if (scores[columns_[c]] > scores[columns_[best]]) best = c;
        }
        return best;
    }
    bool label_of(nb::handle y, double& label, double& weight) const {
        if (task_ == Task::novelty) {
            label = 1;
            return true;
        }
        if (task_ == Task::regression) {
            if (Py_TYPE(y.ptr()) != &PyFloat_Type && Py_TYPE(y.ptr()) != &PyLong_Type && !PyFloat_Check(y.ptr()))
                return false;
            label = PyFloat_AsDouble(y.ptr());
            if (label == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
            return std::isfinite(label) && std::abs(label) <= largest_;
        }
        PyObject* code = PyDict_GetItemWithError(codes_.ptr(), y.ptr());
        if (!code) {
            PyErr_Clear();  // a new label, or none at all
            return false;
        }
        label = PyFloat_AsDouble(code);
        weight = weights_[static_cast<std::size_t>(label)];
        return true;
    }
    // The event as cells or numbers; `use` gets either.
    template <class F>
    const double* with_event(nb::handle x, bool learn, F use) const {
        thread_local std::vector<Cell> cells;
        thread_local std::vector<double> numbers;
        cells.resize(table_.columns());
        const auto form = reader_.read(x, learn, table_.gaps() != Gaps::zero, cells, numbers);
        if (form == CellReader::Form::neither) return nullptr;
        if (form == CellReader::Form::numbers) {
            if (table_.is_plain() && all_finite(numbers.data(), numbers.size()))
                return use(std::span<const double>(numbers));
            for (std::size_t c = 0; c < cells.size(); ++c)
                cells[c] = {std::isnan(numbers[c]) ? Cell::Kind::missing : Cell::Kind::number, numbers[c], {}};
        }
        return use(std::span<const Cell>(cells));
    }
    const double* take(nb::handle x) {
        return with_event(x, true, [&](auto event) { return rows_.learn(event, scratch()); });
    }
    const double* encoded(nb::handle x) const {
        return with_event(x, false, [&](auto event) { return rows_.encode(event, scratch()); });
    }
    std::uint64_t moment() const { return seqlock_.is_none() ? 0 : nb::cast<std::uint64_t>(seqlock_.attr("moment")); }
    // Writes the scores of one event to found(); false if the path of chunks is needed.
    bool score(nb::handle x) const {
        if (closed_ || !answers_) return false;
        const std::uint64_t before = moment();
        if (before % 2) return false;
        std::size_t classes = 0;
        try {
            const double* row = encoded(x);
            if (!row || !core_->score_event({row, rows_.width()}, found(), classes)) return false;
        } catch (const std::exception&) {
            return false;  // the path of chunks raises the error
        }
        if (moment() != before) return false;
        if (task_ != Task::classification) return found().size() == 1;
        return classes == columns_.size() && found().size() == (classes > 2 ? classes : 1);
    }

    std::vector<nb::object> owners_;
    Table& table_;
    EventRows rows_;
    CellReader reader_;
    nb::object seqlock_, counted_ = nb::none();
    std::uint64_t quiet_;  // events before which nothing is due
    Doubles row_;
    bool closed_ = false, answers_ = false;

    EventCore* core_ = nullptr;
    TargetScale* target_ = nullptr;
    Task task_ = Task::novelty;
    nb::dict codes_;
    std::vector<double> weights_;
    double largest_ = 0;
    nb::list classes_, labels_;
    std::vector<std::size_t> columns_;
    double sign_ = 1;
};

void bind_target_scale(nb::module_& m) {
    nb::class_<TargetScale>(m, "TargetScale")
        .def(nb::init<>())
        .def_rw("first", &TargetScale::first)
        .def_rw("count", &TargetScale::count)
        .def_rw("sum", &TargetScale::sum)
        .def_rw("squares", &TargetScale::squares)
        .def_rw("centre", &TargetScale::centre)
        .def_rw("spread", &TargetScale::spread)
        .def_rw("next", &TargetScale::next)
        .def_prop_ro("is_known", &TargetScale::is_known)
        .def_prop_ro("mean", &TargetScale::mean)
        .def("due", &TargetScale::due)
        .def("inside",
             [](const TargetScale& scale, Array1<double> targets) {
                 std::vector<double> out(targets.size());
                 for (std::size_t i = 0; i < out.size(); ++i) out[i] = scale.inside(targets.data()[i]);
                 return array_of(std::move(out));
             })
        .def("means",
             [](const TargetScale& scale, Array1<double> targets) {
                 std::vector<double> out(targets.size());
                 if (!out.empty()) scale.means({targets.data(), targets.size()}, out.data());
                 return array_of(std::move(out));
             })
        .def(
            "learn",
            [](TargetScale& scale, Array1<double> targets) -> std::optional<std::tuple<double, double>> {
                const auto move = scale.learn({targets.data(), targets.size()});
                return move ? std::optional(std::tuple(move->factor, move->shift)) : std::nullopt;
            },
            "Targets up to the next position at most; there, if the scale moves, factor and shift of old targets.")
        .def("take", &TargetScale::take)
        .def("settle", &TargetScale::settle)
        .def("to",
             [](const TargetScale& scale, const TargetScale& other) {
                 const auto move = scale.to(other);
                 return std::tuple(move.factor, move.shift);
             })
        .def("assign", [](TargetScale& scale, const TargetScale& other) { scale = other; });
}

}  // namespace

void bind_pipeline(nb::module_& m) {
    nb::class_<EventCore>(m, "EventCore");
    bind_target_scale(m);
    nb::class_<Table>(m, "Table")
        .def(
            "__init__",
            [](Table* self, const std::string& gaps, bool flags) { new (self) Table(gaps_from(gaps), flags); },
            nb::arg("gaps"), nb::arg("flags"))
        .def("add_column", &Table::add_column)
        .def("add_gap", &Table::add_gap)
        .def("add_kind", [](Table& table, std::size_t column, const std::string& kind,
                            std::size_t places) { table.add_kind(column, kind_from(kind), places); })
        .def("add_missing", &Table::add_missing)
        .def("add_value",
             [](Table& table, std::size_t column, nb::str text) {
                 Py_ssize_t size = 0;
                 const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
                 if (!utf8) {  // a lone surrogate: no event is found under it here
                     PyErr_Clear();
                     std::string none = std::to_string(table.width());
                     none.insert(none.begin(), '\xff');  // no UTF-8
                     table.add_value(column, none);
                     return;
                 }
                 table.add_value(column, {utf8, static_cast<std::size_t>(size)});
             })
        .def("add_other", &Table::add_other)
        .def("truncate", &Table::truncate)
        .def_prop_ro("entries", &Table::entries)
        .def_prop_ro("width", &Table::width)
        .def_prop_ro("columns", &Table::columns)
        .def_prop_ro("is_readable", &Table::is_readable)
        .def_prop_ro("scaled", &Table::scaled)
        .def_prop_ro("numbers", &Table::numbers)
        .def("bytes", &Table::bytes, nb::arg("entries"))
        .def("entries_at", &Table::entries_at, nb::arg("width"))
        .def_rw("seen", &Table::seen)
        .def_prop_rw(
            "means", [](Table& table) -> Means& { return table.means; },
            [](Table& table, const Means& means) { table.means = means; }, nb::rv_policy::reference_internal);
    nb::class_<EventPipeline>(m, "EventPipeline")
        .def(nb::init<nb::object, nb::object, std::vector<double>, std::size_t, nb::dict, nb::set, nb::object,
                      std::uint64_t>(),
             nb::arg("table"), nb::arg("scaling").none(), nb::arg("weights"), nb::arg("width"), nb::arg("names"),
             nb::arg("left_out"), nb::arg("seqlock").none(), nb::arg("quiet"))
        .def("connect", &EventPipeline::connect, nb::arg("core"), nb::arg("task"), nb::arg("codes"), nb::arg("weights"),
             nb::arg("largest"), nb::arg("target").none())
        .def("answer", &EventPipeline::answer, nb::arg("classes"), nb::arg("labels"), nb::arg("columns"),
             nb::arg("sign"))
        .def("count_for", &EventPipeline::count_for, nb::arg("scaler"))
        .def("close", &EventPipeline::close)
        .def("learn_one", &EventPipeline::learn_one, nb::arg("x").none(), nb::arg("y").none())
        .def("learn", &EventPipeline::learn, nb::arg("x").none())
        .def("rollback", &EventPipeline::rollback)
        .def("row_of", &EventPipeline::row_of, nb::arg("x").none())
        .def("score_one", &EventPipeline::score_one, nb::arg("x").none())
        .def("predict_one", &EventPipeline::predict_one, nb::arg("x").none())
        .def("predict_proba_one", &EventPipeline::predict_proba_one, nb::arg("x").none());
}

}  // namespace gristmill::bind
