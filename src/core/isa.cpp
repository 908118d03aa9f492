// Choose the widest instruction set that this machine has. GRISTMILL_ISA in the environment may ask for a narrower one.
#include "core/isa.hpp"

#include <cstdlib>
#include <cstring>

namespace gristmill {

#define GRISTMILL_DECLARE(name)          \
    namespace name {                     \
    extern const Isa<double> kDouble;    \
    extern const Isa<float> kFloat;      \
    extern const IsaScore kScore;        \
    extern const IsaGradient<double> kDoubleGradient; \
    extern const IsaGradient<float> kFloatGradient;   \
    }
GRISTMILL_DECLARE(baseline)
#if defined(__x86_64__) || defined(_M_X64)
GRISTMILL_DECLARE(avx2)
GRISTMILL_DECLARE(avx512)
#endif

namespace {

struct Choice {
    const Isa<double>* doubles = &baseline::kDouble;
    const Isa<float>* floats = &baseline::kFloat;
    const IsaScore* score = &baseline::kScore;
    const IsaGradient<double>* double_gradient = &baseline::kDoubleGradient;
    const IsaGradient<float>* float_gradient = &baseline::kFloatGradient;
};

Choice choose() {
    Choice choice;
#if defined(__x86_64__) || defined(_M_X64)
    const char* asked = std::getenv("GRISTMILL_ISA");
    auto wanted = [&](const char* name) { return asked == nullptr || std::strcmp(asked, name) == 0; };
    __builtin_cpu_init();
    if (wanted("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return {&avx512::kDouble, &avx512::kFloat, &avx512::kScore, &avx512::kDoubleGradient, &avx512::kFloatGradient};
    if (wanted("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return {&avx2::kDouble, &avx2::kFloat, &avx2::kScore, &avx2::kDoubleGradient, &avx2::kFloatGradient};
#endif
    return choice;
}

const Choice& chosen() {
    static const Choice choice = choose();
    return choice;
}

}  // namespace

template <>
const Isa<double>& isa<double>() { return *chosen().doubles; }
template <>
const Isa<float>& isa<float>() { return *chosen().floats; }
template <>
const IsaGradient<double>& isa_gradient<double>() { return *chosen().double_gradient; }
template <>
const IsaGradient<float>& isa_gradient<float>() { return *chosen().float_gradient; }
const IsaScore& isa_score() { return *chosen().score; }
const char* isa_name() { return chosen().doubles->name; }

}  // namespace gristmill
