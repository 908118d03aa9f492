// Folder simd: vector code, compiled once per instruction set and reached through the tables of functions below.
// It includes nothing of the other folders; base/ and everything above may include dispatch.hpp and fleet_dispatch.hpp.
// Begin here; then kernel_blocks.hpp (dot products, exp, kernels) and fleet_kernels.hpp (many small learners).
//
// All sets that fuse a multiplication with an addition (avx2, avx512, neon) give the same bits: a lane is a stored
// point, and sums over points run in kPad partial sums and one tree, whatever the width of a vector. The x86-64
// baseline cannot fuse and rounds twice: it is as exact, but its bits differ.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gristmill {

// A block holds as many stored points as fill one cache line, one feature after the other: block[j * lanes + l].
inline constexpr std::size_t kLineBytes = 64;
template <class T>
inline constexpr std::size_t kLanes = kLineBytes / sizeof(T);
// Rows of kernel values and coefficients are padded to a multiple of this, so that no loop has a remainder.
inline constexpr std::size_t kPad = 16;
inline constexpr std::size_t padded(std::size_t n) { return (n + kPad - 1) / kPad * kPad; }

// A kernel is an expression over three quantities of a pair: the dot product, the L1 distance and the two norms.
enum class Op : std::int32_t {
    linear,
    polynomial,
    gaussian,
    laplacian,
    exponential,
    vovk,
    sigmoid,
    manhattan,
    squared_euclidean,
    normalized,
    sum,
    product,
    multiple
};
struct Node {
    Op op;
    std::int32_t left = -1, right = -1;  // child nodes, for the last four operations
    std::int32_t n = 0;  // the degree
    double a = 0, b = 0;  // scale and shift
};

// The input of an expression: one row x against `size` points y (a multiple of the lanes).
template <class T>
struct Pairs {
    const T* dot;  // <x, y>; may be null if the expression does not need it
    const T* l1;  // sum |x - y|; may be null as well
    T x_norm2;  // <x, x>
    const T* y_norm2;  // <y, y>
    std::size_t size;
};

template <class T>
struct Isa {
    const char* name;
    // out[r * stride + i] for `count` dense rows against `n_blocks` blocks; sums run over features in order.
    void (*dots)(const T* const* rows, std::size_t count, const T* blocks, std::size_t n_blocks, std::size_t width,
                 T* out, std::size_t stride);
    void (*l1s)(const T* const* rows, std::size_t count, const T* blocks, std::size_t n_blocks, std::size_t width,
                T* out, std::size_t stride);
    // The same for one sparse row, in time proportional to its non-zeros. For l1, `out` comes in holding the sums of
    // the two L1 norms.
    void (*sparse_dots)(const std::int32_t* columns, const T* values, std::size_t nonzeros, const T* blocks,
                        std::size_t n_blocks, std::size_t width, T* out);
    void (*sparse_l1s)(const std::int32_t* columns, const T* values, std::size_t nonzeros, const T* blocks,
                       std::size_t n_blocks, std::size_t width, T* out);
    // <x, x> of each row, with the same order and rounding as a lane of `dots`.
    void (*norms2)(const T* const* rows, std::size_t count, std::size_t width, T* out);
    // Kernel values of pairs, in double precision. scratch: (nodes + 2) * size values.
    void (*transform)(const Node* nodes, std::int32_t root, const Pairs<T>& pairs, T* scratch, double* out);
    void (*transform_self)(const Node* nodes, std::int32_t root, const T* norm2, std::size_t size, T* scratch,
                           double* out);
    // y_i += s_i x_i
    void (*fold)(const T* x, const T* s, std::size_t n, T* y);
    // The Walsh-Hadamard transform, unnormalised, in place; n a power of two.
    void (*hadamard)(T* x, std::size_t n);
};

struct IsaScore {
    // sum_i a_i b_i in one fixed order; n a multiple of kPad.
    double (*dot)(const double* a, const double* b, std::size_t n);
    // a_i += c b_i
    void (*axpy)(double c, const double* b, double* a, std::size_t n);
    void (*scale)(double c, double* a, std::size_t n);
    // sum_j rows[r][j] y[j] with j in order and fused, rounded like a lane of `dots`.
    void (*ordered)(const double* const* rows, std::size_t count, const double* y, std::size_t n, double* out);
    // kStair coordinates of a forward substitution for `count` rows: z_j = (value_j - sum_j) inverse_j, and each z_j is
    // added to the sums of the later ones with column j of the triangle. sums: kStair numbers per row.
    void (*forward)(const double* triangle, const double* inverse, const double* const* values, std::size_t count,
                    double* sums, double* const* z);
    // out[j] = sum_i weights_i y_i[j] over the points y_i of one or more whole blocks: the transpose of `dots`.
    void (*lane_sums)(const double* blocks, std::size_t n_blocks, std::size_t width, const double* weights,
                      double* out);
};

// Events stored as whole numbers, compared by the sum of |differences|.
struct IsaCodes {
    // Columns of `lanes` numbers (a multiple of kPad), a lane a stored event; numbers differ by less than 2^31 / width.
    void (*fine)(const std::int32_t* x, const std::int32_t* codes, std::size_t width, std::size_t lanes,
                 std::uint32_t* out);
    // `count` rows of `stride` bytes (a multiple of kPad).
    void (*bytes)(const std::uint8_t* x, const std::uint8_t* rows, std::size_t count, std::size_t stride,
                  std::uint32_t* out);
};

struct SlopesWanted {  // the slopes that are not 0 for all pairs
    bool dot, norm, l1;
};
template <class T>
struct IsaGradient {
    // The value of an expression and its slopes with respect to <x, y>, <x, x> / 2 and the L1 distance, `size` numbers
    // each, written to the first four rows of scratch: the derivative by x_j is dot y_j + norm x_j + l1 sign(x_j -
    // y_j). Rows that are not wanted are not written. scratch: kSlopeScratch * (nodes + 2) * size values.
    void (*slopes)(const Node* nodes, std::int32_t root, const Pairs<T>& pairs, SlopesWanted wanted, T* scratch);
    // Transposes points from blocks of lanes to contiguous features: the first cache line of every point, then the
    // second, and so on. `to` holds whole lines.
    void (*lines)(const T* blocks, std::size_t n_blocks, std::size_t width, T* to);
    // out[k][j] += sum_i weights[k][i] y_i[j] over the n indices i in `places`, in their order (null: 0, ..., n - 1).
    // width: a multiple of a cache line; points: laid out by `lines`.
    void (*points)(const T* const* weights, std::size_t count, const std::uint32_t* places, std::size_t n,
                   const T* points, std::size_t n_points, std::size_t width, T* const* out);
    // out[k][j] += sum_i weights[k][i] sign(rows[k][j] - y_i[j]) with sign(0) = 0. shared: weights of the same row are
    // adjacent, and its signs are computed once for several of them. scratch: sign_scratch_size<T>() numbers.
    void (*signs)(const T* const* weights, const T* const* rows, std::size_t count, bool shared, const T* blocks,
                  std::size_t n_blocks, std::size_t width, T* scratch, T* const* out);
    void (*times)(const T* a, const T* b, std::size_t n, T* out);  // out_i = a_i b_i
    void (*plus)(const T* a, double c, const T* b, std::size_t n, double* out);  // out_i = a_i + c b_i
};
inline constexpr std::size_t kSlopeScratch = 6;
inline constexpr std::size_t kSignStripe = 4;  // largest number of features copied together
template <class T>
constexpr std::size_t sign_scratch_size(std::size_t n_blocks, std::size_t count) {
    return kSignStripe * kLanes<T> * (n_blocks + count) + padded(kSignStripe * count);
}

// A triangular factor is stored in steps of this many rows: three blocks of lanes.
inline constexpr std::size_t kStair = 24;

template <class T>
const Isa<T>& isa();
template <class T>
T norm2(const T* row, std::size_t width) {
    T sum;
    isa<T>().norms2(&row, 1, width, &sum);
    return sum;
}
template <class T>
const IsaGradient<T>& isa_gradient();
const IsaScore& isa_score();
const IsaCodes& isa_codes();
const char* isa_name();
// The instruction sets available in this build on this machine, narrowest first. (No std::vector:
// simd/kernel_blocks.cpp includes this header.)
struct IsaNames {
    const char* name[4];
    std::size_t count;
    const char* const* begin() const { return name; }
    const char* const* end() const { return name + count; }
};
IsaNames isas();

}  // namespace gristmill
