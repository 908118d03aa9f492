// The table of the instruction set that isa.cpp chose.
#include "core/isa_fleet.hpp"

#include <cstring>

namespace gristmill {

#define GRISTMILL_DECLARE(name)                 \
    namespace name {                            \
    extern const IsaFleet<double> kFleetDouble; \
    extern const IsaFleet<float> kFleetFloat;   \
    }
GRISTMILL_DECLARE(baseline)
#if defined(__x86_64__) || defined(_M_X64)
GRISTMILL_DECLARE(avx2)
GRISTMILL_DECLARE(avx512)
#endif

template <>
const IsaFleet<double>& isa_fleet<double>() {
#if defined(__x86_64__) || defined(_M_X64)
    static const bool wide = std::strcmp(isa_name(), "avx512") == 0, narrow = std::strcmp(isa_name(), "avx2") == 0;
    if (wide) return avx512::kFleetDouble;
    if (narrow) return avx2::kFleetDouble;
#endif
    return baseline::kFleetDouble;
}
template <>
const IsaFleet<float>& isa_fleet<float>() {
#if defined(__x86_64__) || defined(_M_X64)
    static const bool wide = std::strcmp(isa_name(), "avx512") == 0, narrow = std::strcmp(isa_name(), "avx2") == 0;
    if (wide) return avx512::kFleetFloat;
    if (narrow) return avx2::kFleetFloat;
#endif
    return baseline::kFleetFloat;
}

}  // namespace gristmill
