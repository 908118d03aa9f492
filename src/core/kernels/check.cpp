#include "core/kernels/check.hpp"

#include <cmath>
#include <cstdio>

namespace gristmill {

namespace {

template <class T>
std::size_t first_bad(const T* values, std::size_t n) {
    // x - x is 0 for every finite number and NaN otherwise, so that one sum shows whether to search. Sixteen
    // independent sums hide the latency.
    T sums[16] = {}, sum = 0;
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (std::size_t k = 0; k < 16; ++k) sums[k] += values[i + k] - values[i + k];
    for (; i < n; ++i) sum += values[i] - values[i];
    for (const T s : sums) sum += s;
    if (sum == T(0)) return n;
    for (std::size_t j = 0; j < n; ++j)
        if (!std::isfinite(values[j])) return j;
    return n;
}

[[noreturn]] void not_finite(std::size_t row, std::size_t column, double value) {
    char text[160];
    // Users of scikit-learn search for the words "NaN" and "infinity".
    std::snprintf(text, sizeof text, "Input X contains %s: row %zu, column %zu is %g; impute or drop such rows first",
                  std::isnan(value) ? "NaN" : "infinity", row, column, value);
    throw RowError(row, text);
}

void refuse_row(const Kernel& kernel, std::size_t row, double norm2) {
    if (const auto why = kernel.refusal(norm2)) throw RowError(row, "row " + std::to_string(row) + " " + *why);
}

template <class T>
void check(const DenseRows<T>& rows, const Kernel& kernel) {
    for (std::size_t i = 0; i < rows.count; ++i) {
        const T* row = rows.row(i);
        if (const auto j = first_bad(row, rows.width); j < rows.width) not_finite(i, j, row[j]);
        if (kernel.restricts_points()) refuse_row(kernel, i, norm2(row, rows.width));
    }
}

[[noreturn]] void bad_index(std::size_t row, std::int64_t column, std::size_t width) {
    throw RowError(
        row, "row " + std::to_string(row) + ": the sparse rows are damaged: column index " + std::to_string(column) +
                 " is not above the one before it and below the number of features, " + std::to_string(width));
}

template <class T>
void check(const SparseRows<T>& rows, const Kernel& kernel) {
    const std::int64_t end = rows.start[rows.count];
    for (std::size_t i = 0; i < rows.count; ++i) {
        if (rows.start[i] > rows.start[i + 1] || rows.start[i + 1] > end)
            throw RowError(i, "row " + std::to_string(i) + ": the sparse rows are damaged: indptr does not ascend");
        const T* row = rows.values(i);
        const std::size_t n = rows.nonzeros(i);
        std::int64_t before = -1;
        for (std::size_t k = 0; k < n; ++k) {
            const std::int64_t column = rows.columns(i)[k];
            if (column <= before || column >= static_cast<std::int64_t>(rows.width)) bad_index(i, column, rows.width);
            before = column;
        }
        if (const auto k = first_bad(row, n); k < n) not_finite(i, rows.columns(i)[k], row[k]);
        if (kernel.restricts_points()) refuse_row(kernel, i, norm2(row, n));
    }
}

void check(const ForeignRows&, const Kernel&) {}

}  // namespace

void check_width(const Batch& batch, std::size_t width) {
    const std::size_t got = std::visit(
        [&](const auto& rows) {
            if constexpr (requires { rows.width; }) return rows.width;
            else return width;  // objects have no features
        },
        batch);
    if (got != width)
        throw std::invalid_argument("X has " + std::to_string(got) + " features, but the model was started with " +
                                    std::to_string(width));
}

void check_rows(const Batch& batch, const Kernel& kernel) {
    std::visit([&](const auto& rows) { check(rows, kernel); }, batch);
}

}  // namespace gristmill
