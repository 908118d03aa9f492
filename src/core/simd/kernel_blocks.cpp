// Compiled once per instruction set, with GRISTMILL_ISA as its name. Includes only headers of simd/: the linker might
// otherwise keep a standard inline function compiled for a wide machine and run it on a narrow one.
#include "core/simd/code_distances.hpp"
#include "core/simd/gradient.hpp"

namespace gristmill::GRISTMILL_ISA {

extern const Isa<double> kDouble;
extern const Isa<float> kFloat;
extern const IsaScore kScore;
extern const IsaCodes kCodes;
extern const IsaGradient<double> kDoubleGradient;
extern const IsaGradient<float> kFloatGradient;

const Isa<double> kDouble = table<double>();
const Isa<float> kFloat = table<float>();
const IsaScore kScore = {&score_dot, &axpy, &scale, &ordered, &forward, &lane_sums};
const IsaCodes kCodes = {&fine_distances, &byte_distances};
const IsaGradient<double> kDoubleGradient = gradient_table<double>();
const IsaGradient<float> kFloatGradient = gradient_table<float>();

}  // namespace gristmill::GRISTMILL_ISA
