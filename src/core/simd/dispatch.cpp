// Chooses the widest instruction set of this machine; the environment variable GRISTMILL_ISA may name another one.
#include "core/simd/fleet_dispatch.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace gristmill {

#define GRISTMILL_DECLARE(name)                       \
    namespace name {                                  \
    extern const Isa<double> kDouble;                 \
    extern const Isa<float> kFloat;                   \
    extern const IsaScore kScore;                     \
    extern const IsaCodes kCodes;                     \
    extern const IsaGradient<double> kDoubleGradient; \
    extern const IsaGradient<float> kFloatGradient;   \
    extern const IsaFleet<double> kFleetDouble;       \
    extern const IsaFleet<float> kFleetFloat;         \
    }
#if defined(__aarch64__)
GRISTMILL_DECLARE(neon)  // every aarch64 machine has it
#else
GRISTMILL_DECLARE(baseline)
#endif
#if defined(__x86_64__)
GRISTMILL_DECLARE(avx2)
GRISTMILL_DECLARE(avx512)
#endif

#if defined(__wasm__)
// With one instruction set there is nothing to choose. Tables are named where they are used: unused ones are not linked.
template <>
const Isa<double>& isa<double>() {
    return baseline::kDouble;
}
template <>
const Isa<float>& isa<float>() {
    return baseline::kFloat;
}
template <>
const IsaGradient<double>& isa_gradient<double>() {
    return baseline::kDoubleGradient;
}
template <>
const IsaGradient<float>& isa_gradient<float>() {
    return baseline::kFloatGradient;
}
template <>
const IsaFleet<double>& isa_fleet<double>() {
    return baseline::kFleetDouble;
}
template <>
const IsaFleet<float>& isa_fleet<float>() {
    return baseline::kFleetFloat;
}
const IsaScore& isa_score() { return baseline::kScore; }
const char* isa_name() { return baseline::kDouble.name; }
IsaNames isas() { return {{isa_name()}, 1}; }

#else
namespace {

struct Choice {
    const Isa<double>* doubles;
    const Isa<float>* floats;
    const IsaScore* score;
    const IsaCodes* codes;
    const IsaGradient<double>* double_gradient;
    const IsaGradient<float>* float_gradient;
    const IsaFleet<double>* double_fleet;
    const IsaFleet<float>* float_fleet;
};
#define GRISTMILL_CHOICE(name)                                                                                      \
    Choice {                                                                                                        \
        &name::kDouble, &name::kFloat, &name::kScore, &name::kCodes, &name::kDoubleGradient, &name::kFloatGradient, \
            &name::kFleetDouble, &name::kFleetFloat                                                                 \
    }

// Narrowest first.
std::vector<Choice> available() {
    std::vector<Choice> found;
#if defined(__aarch64__)
    found.push_back(GRISTMILL_CHOICE(neon));
#else
    found.push_back(GRISTMILL_CHOICE(baseline));
#endif
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool fuses = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (fuses) found.push_back(GRISTMILL_CHOICE(avx2));
    if (fuses && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        found.push_back(GRISTMILL_CHOICE(avx512));
#endif
    return found;
}

Choice choose() {
    const std::vector<Choice> choices = available();
    const char* asked = std::getenv("GRISTMILL_ISA");
    if (asked == nullptr || *asked == '\0') return choices.back();
    std::string names;
    for (const Choice& choice : choices) {
        if (std::strcmp(asked, choice.doubles->name) == 0) return choice;
        names += (names.empty() ? "" : ", ") + std::string(choice.doubles->name);
    }
    throw std::invalid_argument("GRISTMILL_ISA is '" + std::string(asked) + "', but this machine has: " + names +
                                "; name one of them, or leave the variable unset for the widest");
}

const Choice& chosen() {
    static const Choice choice = choose();
    return choice;
}

}  // namespace

template <>
const Isa<double>& isa<double>() {
    return *chosen().doubles;
}
template <>
const Isa<float>& isa<float>() {
    return *chosen().floats;
}
template <>
const IsaGradient<double>& isa_gradient<double>() {
    return *chosen().double_gradient;
}
template <>
const IsaGradient<float>& isa_gradient<float>() {
    return *chosen().float_gradient;
}
template <>
const IsaFleet<double>& isa_fleet<double>() {
    return *chosen().double_fleet;
}
template <>
const IsaFleet<float>& isa_fleet<float>() {
    return *chosen().float_fleet;
}
const IsaScore& isa_score() { return *chosen().score; }
const IsaCodes& isa_codes() { return *chosen().codes; }
const char* isa_name() { return chosen().doubles->name; }
IsaNames isas() {
    IsaNames names{{}, 0};
    for (const Choice& choice : available()) names.name[names.count++] = choice.doubles->name;
    return names;
}
#endif

}  // namespace gristmill
