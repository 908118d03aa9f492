// One event of a table as Python has it, a dict or a sequence, as cells of the core.
#pragma once

#include <cmath>

#include "bind/bind.hpp"
#include "core/pipeline/table.hpp"

namespace gristmill::bind {

class CellReader {
  public:
    // names: column of each name; left_out: names that are passed over.
    CellReader(nb::dict names, nb::set left_out);

    enum class Form { cells, numbers, neither };
    // Reads an event. `cells` has one cell per column afterwards, or `numbers` views the numbers of an array. Neither: the
    // event has names or values that are not read here, and has to be read in another way. learn: an unknown name counts as
    // such, else it is passed over. explicit_gaps: whether a cell may say itself that it is missing.
    Form read(nb::handle event, bool learn, bool explicit_gaps, std::span<Cell> cells,
              std::vector<double>& numbers) const;

  private:
    bool read_dict(PyObject* event, bool learn, bool explicit_gaps, std::span<Cell> cells) const;
    bool read_sequence(PyObject* event, bool explicit_gaps, std::span<Cell> cells) const;
    bool read_array(nb::handle event, std::size_t columns, std::vector<double>& numbers) const;
    bool cell_of(PyObject* value, Cell& cell) const;

    nb::dict names_;
    nb::set left_out_;
    nb::object array_, float64_;  // types of NumPy
};

inline CellReader::CellReader(nb::dict names, nb::set left_out)
    : names_(std::move(names)), left_out_(std::move(left_out)) {
    const auto numpy = nb::module_::import_("numpy");
    array_ = numpy.attr("ndarray");
    float64_ = numpy.attr("float64");
}

// Only exact types: a subclass may mean something else.
inline bool CellReader::cell_of(PyObject* value, Cell& cell) const {
    PyTypeObject* const type = Py_TYPE(value);
    if (type == &PyFloat_Type || type == reinterpret_cast<PyTypeObject*>(float64_.ptr())) {
        cell.number = PyFloat_AsDouble(value);
        cell.kind = std::isnan(cell.number) ? Cell::Kind::missing : Cell::Kind::number;
        return true;
    }
    if (type == &PyUnicode_Type) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value, &size);
        if (!text) {
            PyErr_Clear();
            return false;
        }
        cell.text = {text, static_cast<std::size_t>(size)};
        cell.kind = Cell::Kind::text;
        return true;
    }
    if (type == &PyBool_Type) {
        cell.number = value == Py_True ? 1 : 0;
        cell.kind = Cell::Kind::boolean;
        return true;
    }
    if (type == &PyLong_Type) {
        cell.number = PyLong_AsDouble(value);
        if (cell.number == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        cell.kind = Cell::Kind::number;
        return true;
    }
    cell.kind = Cell::Kind::missing;
    return value == Py_None;
}

inline bool CellReader::read_dict(PyObject* event, bool learn, bool explicit_gaps, std::span<Cell> cells) const {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    std::size_t known = 0;
    while (PyDict_Next(event, &at, &key, &value)) {
        if (Py_TYPE(key) != &PyUnicode_Type) return false;
        PyObject* place = PyDict_GetItemWithError(names_.ptr(), key);
        if (!place) {
            if (PyErr_Occurred()) throw nb::python_error();
            const int passed = PySet_Contains(left_out_.ptr(), key);
            if (passed < 0) throw nb::python_error();
            if (learn && !passed) return false;
            continue;
        }
        Cell& cell = cells[static_cast<std::size_t>(PyLong_AsSsize_t(place))];
        if (!cell_of(value, cell) || (cell.kind == Cell::Kind::missing && !explicit_gaps)) return false;
        ++known;
    }
    return known > 0;
}

// A row of values without names means what NumPy makes of it: truths beside numbers are numbers, unless there is a text or a
// None, with which every cell stays what it is.
inline bool CellReader::read_sequence(PyObject* event, bool explicit_gaps, std::span<Cell> cells) const {
    const bool is_list = PyList_CheckExact(event);
    const auto size = is_list ? PyList_Size(event) : PyTuple_Size(event);
    if (static_cast<std::size_t>(size) != cells.size() || PySet_Size(left_out_.ptr()) > 0) return false;
    bool mixed = false, truths = false, numbers = false;
    for (Py_ssize_t at = 0; at < size; ++at) {
        PyObject* value = is_list ? PyList_GetItem(event, at) : PyTuple_GetItem(event, at);
        Cell& cell = cells[static_cast<std::size_t>(at)];
        if (!cell_of(value, cell) || (cell.kind == Cell::Kind::missing && !explicit_gaps)) return false;
        mixed = mixed || cell.kind == Cell::Kind::text || value == Py_None;
        truths = truths || cell.kind == Cell::Kind::boolean;
        numbers = numbers || PyFloat_Check(value) || Py_TYPE(value) == &PyLong_Type;
        if (Py_TYPE(value) == &PyLong_Type && !(std::abs(cell.number) < 9007199254740992.0)) return false;
    }
    if (!mixed && truths && numbers)
        for (Cell& cell : cells)
            if (cell.kind == Cell::Kind::boolean) cell.kind = Cell::Kind::number;
    return true;
}

inline bool CellReader::read_array(nb::handle event, std::size_t columns, std::vector<double>& numbers) const {
    nb::ndarray<const double, nb::ndim<1>, nb::device::cpu> array;
    if (!nb::try_cast(event, array, false) || array.shape(0) != columns || PySet_Size(left_out_.ptr()) > 0)
        return false;
    numbers.resize(columns);
    const double* value = array.data();
    for (std::size_t at = 0; at < columns; ++at, value += array.stride(0)) numbers[at] = *value;
    return true;
}

inline CellReader::Form CellReader::read(nb::handle event, bool learn, bool explicit_gaps, std::span<Cell> cells,
                                         std::vector<double>& numbers) const {
    PyObject* const source = event.ptr();
    if (Py_TYPE(source) == reinterpret_cast<PyTypeObject*>(array_.ptr()))
        return read_array(event, cells.size(), numbers) ? Form::numbers : Form::neither;
    std::fill(cells.begin(), cells.end(), Cell());
    const bool found = PyDict_CheckExact(source) ? read_dict(source, learn, explicit_gaps, cells)
                       : PyList_CheckExact(source) || PyTuple_CheckExact(source)
                           ? read_sequence(source, explicit_gaps, cells)
                           : false;
    return found ? Form::cells : Form::neither;
}

}  // namespace gristmill::bind
