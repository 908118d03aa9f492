// exp, expm1, log, log1p and pow of one number, for everything that is learned: the functions of C libraries differ in
// the last bit from machine to machine. Every operation here is one that IEEE 754 rounds in one way (+ - * / and
// std::fma), in a fixed order, so that the bits are the same everywhere. Errors stay below 1 ulp.
//
// std::sqrt and std::fma are exact by that standard and need no replacement. simd/kernel_blocks.hpp has exp of vectors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gristmill::elementary {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Twofold {  // an unevaluated sum of two doubles; |low| is at most half an ulp of high
    double high, low;
};
inline Twofold sum_of(double a, double b) {
    const double sum = a + b, share = sum - a;
    return {sum, (a - (sum - share)) + (b - share)};
}
inline Twofold product_of(Twofold a, Twofold b) {
    const double high = a.high * b.high;
    const double low = std::fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high);
    return sum_of(high, low);
}
inline Twofold operator+(Twofold a, Twofold b) {
    const Twofold s = sum_of(a.high, b.high);
    return sum_of(s.high, s.low + (a.low + b.low));
}

// ---- exp ----------------------------------------------------------------------------------------------------------

inline double power_of_two(std::int64_t n) {  // -1022 <= n <= 1023
    return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// e^(x + tail) = 2^n (1 + r + rest), |r| <= ln(2)/2; requires: `tail` is small relative to x.
struct Reduced {
    std::int64_t n;
    double r, rest;
};
inline Reduced reduce(double x, double tail) {
    constexpr double shift = 0x1.8p52, log2e = 0x1.71547652b82fep0;
    constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
    // Adding 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits.
    const double shifted = x * log2e + shift, whole = shifted - shift;
    const double coarse = x - whole * ln2_high;  // exact: the product has few bits
    const double fine = whole * ln2_low - tail;
    const double r = coarse - fine, lost = (coarse - r) - fine;
    // r^2/2 + r^3 q(r), q of degree 9 through the Chebyshev nodes (2.5e-18 relative to expm1); its terms are summed in
    // pairs to shorten the dependency chain.
    const double r2 = r * r, r4 = r2 * r2;
    const double q0 = 0x1.5555555555556p-3 + r * 0x1.5555555555555p-5;
    const double q1 = 0x1.11111111109b4p-7 + r * 0x1.6c16c16c167e1p-10;
    const double q2 = 0x1.a01a01a7c3d59p-13 + r * 0x1.a01a01a47adc4p-16;
    const double q3 = 0x1.71de0daf7a6ccp-19 + r * 0x1.27e4e1f5246c7p-22;
    const double q4 = 0x1.af38a71a18cb9p-26 + r * 0x1.1f66de051eb02p-29;
    const double q = (q0 + r2 * q1) + r4 * ((q2 + r2 * q3) + r4 * q4);
    const auto n = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(shift);
    return {n, r, lost + r2 * (0.5 + r * q)};
}

inline double exp(double x, double tail = 0) {
    if (!(x <= 709.79)) return x > 0 ? kInf : x;  // NaN stays NaN
    if (x < -745.2) return 0;
    const Reduced e = reduce(x, tail);
    const double near = 1 + e.r;
    const double value = near + (((1 - near) + e.r) + e.rest);
    if (e.n >= -1022 && e.n <= 1023) return value * power_of_two(e.n);
    // Outside the range of normal numbers in two steps; only the second can round.
    return e.n > 0 ? value * 2 * power_of_two(e.n - 1) : value * power_of_two(e.n + 100) * 0x1p-100;
}

inline double expm1(double x) {
    if (!(x < 700)) return exp(x);
    if (x < -40) return -1;
    const Reduced e = reduce(x, 0);
    const double scale = power_of_two(e.n);
    const Twofold start = sum_of(scale, -1), head = sum_of(start.high, scale * e.r);
    return head.high + (head.low + (start.low + scale * e.rest));
}

// ---- log ----------------------------------------------------------------------------------------------------------

// log(x.high + x.low) with a relative error of about 2^-65. requires: positive and finite.
inline Twofold log_of(Twofold x) {
    std::int64_t k = 0;
    if (x.high < 0x1p-1022) {
        x.high *= 0x1p54;
        x.low *= 0x1p54;
        k = -54;
    }
    const auto bits = std::bit_cast<std::int64_t>(x.high);
    // k such that m = x / 2^k lies between sqrt(1/2) and sqrt(2)
    constexpr auto root_half = std::bit_cast<std::int64_t>(0x1.6a09e667f3bcdp-1);
    const std::int64_t shift = (bits - root_half) >> 52;
    k += shift;
    const double m = std::bit_cast<double>(bits - (shift << 52));
    // Two factors, because 2^-shift may leave the range of normal numbers.
    const double m_low = x.low * power_of_two(-(shift / 2)) * power_of_two(-(shift - shift / 2));
    // log m = 2 atanh(s) = 2 s (1 + z/3 + z^2/5 + ...), s = (m-1)/(m+1), z = s^2 < 0.0295
    const Twofold f = sum_of(m - 1, m_low), d = Twofold{2, 0} + f;
    const double s_high = f.high / d.high;
    const double left = std::fma(-s_high, d.high, f.high) + (f.low - s_high * d.low);
    const Twofold s = sum_of(s_high, left / d.high), z = product_of(s, s);
    double tail = 0;
    for (int odd = 27; odd >= 7; odd -= 2) tail = tail * z.high + 1.0 / odd;
    const Twofold fifth = Twofold{0x1.999999999999ap-3, -0x1.999999999999ap-57} + Twofold{z.high * tail, 0};
    const Twofold third = Twofold{0x1.5555555555555p-2, 0x1.5555555555555p-56} + product_of(z, fifth);
    const Twofold series = product_of({2 * s.high, 2 * s.low}, Twofold{1, 0} + product_of(z, third));
    const auto n = static_cast<double>(k);
    constexpr double ln2_high = 0x1.62e42fefa3p-1, ln2_low = 0x1.3de6af278ece6p-42;
    return sum_of(n * ln2_high, n * ln2_low) + series;
}

inline double log(double x) {
    if (!(x > 0)) return x == 0 ? -kInf : kNaN;
    return x == kInf ? x : log_of({x, 0}).high;
}

// log within 2 ulp in a quarter of the time: for losses, which are only compared.
inline double quick_log(double x) {  // requires: normal, positive and finite
    const auto bits = std::bit_cast<std::int64_t>(x);
    constexpr auto root_half = std::bit_cast<std::int64_t>(0x1.6a09e667f3bcdp-1);
    const std::int64_t k = (bits - root_half) >> 52;
    const double m = std::bit_cast<double>(bits - (k << 52));
    const double s = (m - 1) / (m + 1), z = s * s, z2 = z * z, z4 = z2 * z2;
    // atanh(s) = s (1 + z/3 + z^2/5 + ...), summed in pairs as above
    const double a = 1.0 / 3 + z * (1.0 / 5), b = 1.0 / 7 + z * (1.0 / 9), c = 1.0 / 11 + z * (1.0 / 13);
    const double d = 1.0 / 15 + z * (1.0 / 17), e = 1.0 / 19 + z * (1.0 / 21);
    const double series = z * ((a + z2 * b) + z4 * ((c + z2 * d) + z4 * e));
    const auto n = static_cast<double>(k);
    constexpr double ln2_high = 0x1.62e42fefa3p-1, ln2_low = 0x1.3de6af278ece6p-42;
    return n * ln2_high + (2 * s + (2 * s * series + n * ln2_low));
}

inline double log1p(double x) {
    if (!(x > -1)) return x == -1 ? -kInf : kNaN;
    return x == kInf || x == 0 ? x : log_of(sum_of(1, x)).high;
}

inline double pow(double x, double y) {  // x >= 0
    if (y == 0 || x == 1) return 1;
    if (!(x > 0) || x == kInf || !(std::abs(y) < kInf)) {
        if (x != x || y != y || x < 0) return kNaN;
        return (x > 1) == (y > 0) ? kInf : 0.0;  // one of x and y is 0 or infinite
    }
    const Twofold l = log_of({x, 0});
    const double high = y * l.high;
    if (!(high < 710)) return kInf;
    if (high < -746) return 0;
    return exp(high, std::fma(y, l.high, -high) + y * l.low);
}

}  // namespace gristmill::elementary
