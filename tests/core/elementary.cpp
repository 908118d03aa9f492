// The elementary functions of the core against long double: errors in ulp, special values, and cases whose exact result
// is a double.
#include "core/base/elementary.hpp"

#include <cstdio>
#include <initializer_list>

#include "check.hpp"
#include "core/base/random.hpp"

using namespace gristmill;

namespace {

double ulps(double found, long double wanted) {
    const double near = static_cast<double>(wanted);
    const double ulp = std::abs(std::nextafter(near, elementary::kInf) - near);
    return static_cast<double>(std::abs(found - wanted) / ulp);
}

void within(const char* name, double worst, double at, double allowed) {
    std::printf("%s: %.3f ulp at most, at %.17g\n", name, worst, at);
    CHECK(worst < allowed);
}

template <class F, class G>
void sweep(const char* name, double low, double high, F ours, G exact, double allowed = 1) {
    Random random{7};
    double worst = 0, where = 0;
    for (int i = 0; i < 200'000; ++i) {
        const double x = low + (high - low) * random.uniform();
        if (const double error = ulps(ours(x), exact(static_cast<long double>(x))); !(error <= worst))
            worst = error, where = x;
    }
    within(name, worst, where, allowed);
}

void exponentials() {
    const auto ours = [](double x) { return elementary::exp(x); };
    const auto exact = [](long double x) { return std::exp(x); };
    sweep("exp, whole range", -708, 709.7, ours, exact);
    sweep("exp, subnormal", -745, -708, ours, exact);
    sweep("exp, near 0", -0.4, 0.4, ours, exact);
    const auto less_one = [](long double x) { return std::expm1(x); };
    sweep("expm1, near 0", -1e-3, 1e-3, elementary::expm1, less_one);
    sweep("expm1, around 1", -2, 2, elementary::expm1, less_one);
    sweep("expm1, whole range", -50, 700, elementary::expm1, less_one);
    CHECK(elementary::exp(0.0) == 1 && elementary::exp(-746) == 0 && elementary::exp(710) == elementary::kInf);
    CHECK(elementary::exp(-elementary::kInf) == 0 && elementary::exp(elementary::kInf) == elementary::kInf);
    CHECK(std::isnan(elementary::exp(elementary::kNaN)) && std::isnan(elementary::expm1(elementary::kNaN)));
    CHECK(elementary::expm1(0.0) == 0 && elementary::expm1(-1e-310) == -1e-310 && elementary::expm1(-100) == -1);
}

void logarithms() {
    const auto exact = [](long double x) { return std::log(x); };
    const auto of_one_more = [](long double x) { return std::log1p(x); };
    sweep("log, around 1", 0.5, 2, elementary::log, exact);
    sweep("log, close to 1", 0.999, 1.001, elementary::log, exact);
    sweep("log, large", 1, 1e300, elementary::log, exact);
    sweep("quick log, around 1", 0.5, 2, elementary::quick_log, exact, 2);
    sweep("quick log, close to 1", 0.999, 1.001, elementary::quick_log, exact, 2);
    sweep("quick log, small", 1e-300, 1, elementary::quick_log, exact, 2);
    sweep("log, subnormal", 0, 1e-308, elementary::log, exact);
    sweep("log1p, near 0", -1e-3, 1e-3, elementary::log1p, of_one_more);
    sweep("log1p, to -1", -1, 0, elementary::log1p, of_one_more);
    sweep("log1p, large", 0, 1e20, elementary::log1p, of_one_more);
    CHECK(elementary::log(1) == 0 && elementary::log(0) == -elementary::kInf && std::isnan(elementary::log(-1)));
    CHECK(elementary::log1p(0) == 0 && elementary::log1p(-1e-320) == -1e-320 && std::isnan(elementary::log1p(-1.5)));
    CHECK(elementary::log1p(-1) == -elementary::kInf && elementary::log(elementary::kInf) == elementary::kInf);
}

void powers() {
    for (const double y : {0.5, 0.6, -1.0 / 30, 1.0 / 3, 7.3, -40.0})
        sweep(
            "pow", 0, 1e7, [=](double x) { return elementary::pow(x, y); },
            [=](long double x) { return std::pow(x, static_cast<long double>(y)); });
    sweep(
        "pow of 1.0001", -7e6, 7e6, [](double y) { return elementary::pow(1.0001, y); },
        [](long double y) { return std::pow(static_cast<long double>(1.0001), y); });
    // A window that grows as the square root of time must not step at the wrong square.
    for (int n = 1; n < 100'000; ++n) CHECK(elementary::pow(static_cast<double>(n) * n, 0.5) == n);
    for (int n = 1; n < 60; ++n) CHECK(elementary::pow(3, n) == std::round(std::pow(3.0L, n)) || n > 33);
    CHECK(elementary::pow(0, 2) == 0 && elementary::pow(0, -2) == elementary::kInf && elementary::pow(5, 0) == 1);
    CHECK(elementary::pow(2, 1e9) == elementary::kInf && elementary::pow(2, -1e9) == 0 &&
          std::isnan(elementary::pow(-1, 2.5)));
    CHECK(elementary::pow(2, -1074) == 0x1p-1074 && elementary::pow(elementary::kInf, -1) == 0);
}

}  // namespace

int main() {
    exponentials();
    logarithms();
    powers();
    return summary("elementary");
}
