"""What adapts beside the coefficients, in C99: columns and targets that are scaled, probabilities, intervals."""

from __future__ import annotations

import math
import struct

from .._learning import Learning
from .._plain import COVERAGES
from . import code

# ---- columns ------------------------------------------------------------------------------------------------------

_GAPS = """        if (!@P@_finite(z)) {
            if (z == z) return 0;
            z = (@P@_num)@P@_mean(state, j);
        }
"""
_REFUSING = "        if (!@P@_finite(z)) return 0;\n"
_MEAN = """
/* What stands for a missing value. */
static inline double @P@_mean(const @P@_state *state, int j) {
    return (double)@P@_first[j] + state->total[j] / (state->count[j] > 1 ? state->count[j] : 1);
}
"""
_MOMENTS = """
static inline @P@_num @P@_scaled(@P@_num x, int j, @P@_num mean, @P@_num spread) {
    const @P@_num z = @P@_soft_clipped((@APART@) / (spread > 0 ? spread : 1));
    return @P@_finite(z) ? z : 0;
}
/* A value as it counts: no farther from the mean so far than five deviations, once there are a few events. */
static inline double @P@_clipped(const @P@_state *state, int j, @P@_num x) {
    const double step = (double)x - (double)@P@_first[j], mean = state->mean[j], far = 5 * (double)state->spread[j];
    if (state->scaled < 16 || !(far > 0)) return step;
    return step > mean + far ? mean + far : step < mean - far ? mean - far : step;
}
"""
#: the difference of a value and the mean; in double the library's own, in single precision the one that rounds least
_APART = {False: "x - (mean + @P@_first[j])", True: "(x - @P@_first[j]) - mean"}
_KNOWN = "out[j] = @P@_scaled(z, j, state->mean[j], state->spread[j]);"
_FRESH = """const double taken = @P@_clipped(state, j, z), sum = state->sum[j] + taken;
        const double count = (double)state->scaled + 1, square = state->square[j] + taken * taken;
        const double mean = sum / count, rest = square / count - mean * mean;
        fresh[j] = (@P@_num)mean, fresh[@U@_FEATURES + j] = sqrt@S@((@P@_num)(rest > 0 ? rest : 0));
        out[j] = @P@_scaled(z, j, fresh[j], fresh[@U@_FEATURES + j]);"""
_TAKEN = """if (!@P@_is_settled(state)) {
            const double taken = @P@_clipped(state, j, x[j]);
            state->sum[j] += taken, state->square[j] += taken * taken;
            state->mean[j] = fresh[j], state->spread[j] = fresh[@U@_FEATURES + j];
        }"""
_NEXT = """
static inline int @P@_next_row(const @P@_state *state, const @P@_num *x, @P@_num *out, @P@_num *fresh) {
    int j;
    for (j = 0; j < @U@_FEATURES; ++j)
        if (!@P@_finite(x[j])) return 0;
    return @P@_is_settled(state) ? @P@_row(state, x, out, fresh) : @P@_fresh_row(state, x, out, fresh);
}
"""


def columns(learning: Learning, single: bool) -> str:
    """`row`: a row as the kernel sees it by what is known now; `next_row`: by that and itself; `take`: it counts.

    Means and deviations with the row itself go by `fresh`, twice as many numbers as there are columns.
    """
    first = learning.moments if learning.moments is not None else learning.means
    text = "" if first is None else code.array("@P@_first", first[0], single)
    gaps, taking = _REFUSING, []
    if learning.means is not None:
        text, gaps = text + _MEAN, _GAPS
        taking.append("state->total[j] += (double)x[j] - (double)@P@_first[j], state->count[j] += 1;")
    if learning.moments is None:
        text += _row("row", gaps, "out[j] = z;") + _row("next_row", _REFUSING, "out[j] = z;")
    else:
        text += code.DRAW + _warm(learning.warmup) + _MOMENTS.replace("@APART@", _APART[single])
        text += _row("row", gaps, _KNOWN) + _row("fresh_row", _REFUSING, _FRESH) + _NEXT
        taking.append(_TAKEN)
    lines = "".join(f"        {line}\n" for line in taking)
    loop = f"    for (j = 0; j < @U@_FEATURES; ++j) {{\n{lines}    }}\n" if taking else "    (void)j;\n"
    count = "    ++state->scaled;\n" if learning.moments is not None else ""
    return (
        text
        + "\n/* A row that was learned counts in what the columns are scaled by. */\n"
        + "static inline void @P@_count_row(@P@_state *state, const @P@_num *x, const @P@_num *fresh) {\n    int j;\n"
        + "    (void)state, (void)x, (void)fresh;\n"
        + f"{loop}{count}}}\n"
    )


def _warm(warmup: int | None) -> str:
    """Whether the moments stay as they are."""
    settled = "((void)state, 0)" if warmup is None else f"state->scaled >= {warmup}u"
    return f"static inline int @P@_is_settled(const @P@_state *state) {{ return {settled}; }}\n"


def _row(name: str, gaps: str, out: str) -> str:
    return (
        f"static inline int @P@_{name}(const @P@_state *state, const @P@_num *x, @P@_num *out, @P@_num *fresh) {{\n"
        "    int j;\n    (void)state, (void)fresh;\n    for (j = 0; j < @U@_FEATURES; ++j) {\n        @P@_num z = x[j];\n"
        f"{gaps}        {{ {out} }}\n    }}\n    return 1;\n}}\n"
    )


# ---- targets ------------------------------------------------------------------------------------------------------

TARGETS = """
/* A target counts in the scale of the targets, which is updated at positions that double. */
static inline double @P@_next_measure(double count) {
    double next = 2;
    while (next <= count) next *= 2;
    return next;
}
static inline void @P@_count_target(@P@_state *state, double y) {
    double *t = state->target;
    const double next = @P@_next_measure(t[1]), off = y - t[0];
    double mean, spread, centre;
    t[2] += off, t[3] += off * off, t[1] += 1;
    if (t[1] < next) return;
    mean = t[2] / t[1], centre = t[0] + mean;
    spread = t[3] / t[1] - mean * mean;
    spread = spread > 0 ? sqrt(spread) : 0;
    if (!(spread > 0)) return;
    if (t[5] > 0) {
        const double moved = centre > t[4] ? centre - t[4] : t[4] - centre;
        if (moved <= 0.1 * t[5] && t[5] / 1.25 <= spread && spread <= t[5] * 1.25) return;
        @P@_rescale_targets(state, (@P@_num)(t[5] / spread), (@P@_num)((t[4] - centre) / spread));
    }
    t[4] = centre, t[5] = spread;
}
"""


def targets(adapts: bool) -> str:
    """`take_target`: a target counts, and what was learned follows where the targets are measured anew."""
    width = "    state->width *= factor;\n" if adapts else ""
    text = (
        "\n/* The same function in other units of the target: y as factor y + shift. */\n"
        "static inline void @P@_rescale_targets(@P@_state *state, @P@_num factor, @P@_num shift) {\n    int i;\n"
        "    @P@_shrink(state, factor);\n"
        "    for (i = 0; i < (int)state->size; ++i) state->labels[i] = factor * state->labels[i] + shift;\n"
        "    state->intercept[0] = factor * state->intercept[0] + shift;\n"
        f"    state->interval[1] *= factor;\n{width}}}\n"
    )
    return text + TARGETS


# ---- probabilities ------------------------------------------------------------------------------------------------

CALIBRATION = """
static inline @P@_num @P@_unit(const @P@_state *state) {
    return state->calibration[1] > @SMALL@ ? 1 / sqrt@S@(state->calibration[1]) : 1;
}
/* Scores that were given before the event, and the output of its class: probabilities learn from both. */
static inline void @P@_calibrate(@P@_state *state, const @P@_num *scores, int code) {
    @P@_num *c = state->calibration; /* count, square, slope, curvature, cross */
    const @P@_num unit = @P@_unit(state), keep = @KEEP@, ridge = @RIDGE@;
    @P@_num range, now, root, before = c[1];
#if @U@_OUTPUTS == 1
    const @P@_num z = scores[0] * unit;
    range = scores[0];
    if (!(range * range < @LARGE@)) return;
    {
        const @P@_num t = @P@_max(@P@_min(c[2] * z + state->offsets[0], 30), -30), e = @P@_exp(-@P@_abs(t));
        const @P@_num p = t >= 0 ? 1 / (1 + e) : e / (1 + e);
        const @P@_num weight = @P@_max(p * (1 - p), @LEAST@), error = p - (@P@_num)code;
        @P@_num a, b, pull;
        c[3] = keep * c[3] + weight * z * z;
        c[4] = keep * c[4] + weight * z;
        state->curvatures[0] = keep * state->curvatures[0] + weight;
        a = c[3] + ridge, b = state->curvatures[0] + ridge, pull = error / (a * b - c[4] * c[4]);
        c[2] = @P@_max(c[2] - pull * (b * z - c[4]), 0);
        state->offsets[0] -= pull * (a - c[4] * z);
    }
#else
    @P@_num shares[@U@_OUTPUTS], low = scores[0], high = scores[0], top, sum = 0, mean = 0, pull = 0, spread = 0;
    int o;
    for (o = 1; o < @U@_OUTPUTS; ++o) low = @P@_min(low, scores[o]), high = @P@_max(high, scores[o]);
    range = high - low;
    if (!(range * range < @LARGE@)) return;
    for (o = 0; o < @U@_OUTPUTS; ++o) shares[o] = c[2] * (scores[o] * unit) + state->offsets[o];
    for (top = shares[0], o = 1; o < @U@_OUTPUTS; ++o) top = @P@_max(top, shares[o]);
    for (o = 0; o < @U@_OUTPUTS; ++o) sum += shares[o] = @P@_exp(@P@_max(shares[o] - top, -30));
    for (o = 0; o < @U@_OUTPUTS; ++o) shares[o] /= sum, mean += shares[o] * (scores[o] * unit);
    for (o = 0; o < @U@_OUTPUTS; ++o) {
        const @P@_num z = scores[o] * unit, p = shares[o], error = p - (o == code ? 1 : 0);
        pull += error * z;
        spread += p * (z - mean) * (z - mean);
        state->curvatures[o] = keep * state->curvatures[o] + p * (1 - p);
        state->offsets[o] -= error / (state->curvatures[o] + ridge);
    }
    c[3] = keep * c[3] + spread;
    c[2] = @P@_max(c[2] - pull / (c[3] + ridge), 0);
#endif
    c[0] += 1;
    c[1] += (range * range - c[1]) / @P@_min(c[0], 1000);
    if (before > @SMALL@ && c[1] > @SMALL@) {
        now = @P@_unit(state), root = sqrt@S@(before);
        c[2] *= sqrt@S@(c[1]) * unit;
        c[3] *= root * now * (root * now);
#if @U@_OUTPUTS == 1
        c[4] *= root * now;
#endif
    }
    if (!@P@_finite(c[2]) || !@P@_finite(c[3]) || !@P@_finite(c[4])) c[2] = 1, c[3] = 1, c[4] = 0;
}
"""


def calibration(single: bool) -> str:
    """`calibrate`."""
    text = CALIBRATION
    for word, value in (("KEEP", 0.999), ("RIDGE", 0.1), ("LEAST", 1e-4)):
        text = text.replace(f"@{word}@", code.literal(value, single))
    text = text.replace("@LARGE@", code.literal(1e37 if single else 1e290, single))
    return text.replace("@SMALL@", code.literal(1e-37 if single else 1e-290, single))


# ---- intervals ----------------------------------------------------------------------------------------------------

_STEPS = (0.005, 0.01, 0.02, 0.05, 0.15)
_LAST = 0.01

INTERVALS = """
/* Half widths that cover 50, 80, 90, 95 and 99 of 100 events, in units of the mean error. */
static inline void @P@_thresholds(const @P@_num *t, @P@_num *out) {
    @P@_num widest = 0;
    int l, k;
    for (l = 0; l < 5; ++l) {
        @P@_num mean = 0;
        for (k = 0; k < 5; ++k) mean += t[27 + 5 * l + k] * t[2 + 5 * l + k];
        out[l] = widest = @P@_max(widest, mean * t[52 + l]);
    }
}
/* Target less answer: intervals learn from it. */
static inline void @P@_update_intervals(@P@_state *state, @P@_num error) {
    @P@_num *t = state->interval, bounds[5]; /* count, mean error, thresholds, shares, factors */
    const @P@_num size = @P@_abs(error), units = t[1] > 0 ? @P@_min(size / t[1], @FAR@) : 0;
    int l, k;
    if (!(size < @LARGE@)) return;
    if (t[1] > 0) {
        @P@_thresholds(t, bounds);
        for (l = 0; l < 5; ++l) {
            const @P@_num level = @P@_levels[l], unit = 1 / (bounds[l] * (1 - level));
            @P@_num sum = 0, scale;
            for (k = 0; k < 5; ++k) {
                @P@_num *threshold = &t[2 + 5 * l + k], *share = &t[27 + 5 * l + k];
                const int miss = units > *threshold;
                const @P@_num loss = (miss ? level * (units - *threshold) : (1 - level) * (*threshold - units)) * unit;
                *threshold = @P@_min(@P@_max(*threshold * (miss ? @P@_up : @P@_down)[l][k], @NEAR@), @FAR@);
                sum += *share *= 1 - @RATE@ * @P@_min(loss, 5);
            }
            scale = (1 - @MIXED@) / sum;
            for (k = 0; k < 5; ++k) t[27 + 5 * l + k] = scale * t[27 + 5 * l + k] + @MIXED@ / 5;
            t[52 + l] *= (units > bounds[l] ? @P@_last_up : @P@_last_down)[l];
            t[52 + l] = @P@_min(@P@_max(t[52 + l], @TENTH@), 10);
        }
    }
    t[0] += 1;
    t[1] += (size - t[1]) / @P@_min(t[0], 128);
    if (t[1] < @SMALL@) t[1] = 0;
}
/* Half widths of the intervals around an answer, for 50, 80, 90, 95 and 99 of 100 events. */
static inline void @P@_half_widths(const @P@_state *state, @P@_num *out) {
    int l;
    @P@_thresholds(state->interval, out);
    for (l = 0; l < 5; ++l) out[l] = state->interval[0] > 0 ? out[l] * state->interval[1]@UNITS@ : INFINITY;
}
"""


def intervals(single: bool, scaled: bool) -> str:
    """`update_intervals`, and `half_widths`."""
    text = code.array("@P@_levels", COVERAGES, single)
    for name, table in (
        ("up", [[_exp(step * level) for step in _STEPS] for level in COVERAGES]),
        ("down", [[_exp(-step * (1 - level)) for step in _STEPS] for level in COVERAGES]),
        ("last_up", [_exp(_LAST * level) for level in COVERAGES]),
        ("last_down", [_exp(-_LAST * (1 - level)) for level in COVERAGES]),
    ):
        text += code.array(f"@P@_{name}", table, single)
    text += INTERVALS
    for word, value in (("NEAR", 1e-3), ("FAR", 1e6), ("RATE", 0.15), ("MIXED", 0.001), ("TENTH", 0.1)):
        text = text.replace(f"@{word}@", code.literal(value, single))
    text = text.replace("@UNITS@", " * (@P@_num)state->target[5]" if scaled else "")
    text = text.replace("@LARGE@", code.literal(1e37 if single else 1e290, single))
    return text.replace("@SMALL@", code.literal(1e-37 if single else 1e-290, single))


def _exp(x: float) -> float:
    """e^x of a small number, in the operations and the order of the core's (`elementary.hpp`): the same bits."""
    shift, log2e = float.fromhex("0x1.8p52"), float.fromhex("0x1.71547652b82fep0")
    high, low = float.fromhex("0x1.62e42fefa0000p-1"), float.fromhex("0x1.cf79abc9e3b3ap-40")
    shifted = x * log2e + shift
    whole = shifted - shift
    coarse, fine = x - whole * high, whole * low - 0.0
    r = coarse - fine
    lost = (coarse - r) - fine
    r2 = r * r
    r4 = r2 * r2
    c = [float.fromhex(text) for text in _SERIES]
    q0, q1, q2, q3, q4 = (c[2 * at] + r * c[2 * at + 1] for at in range(5))
    q = (q0 + r2 * q1) + r4 * ((q2 + r2 * q3) + r4 * q4)
    rest = lost + r2 * (0.5 + r * q)
    near = 1 + r
    value = near + (((1 - near) + r) + rest)
    n = struct.unpack("<q", struct.pack("<d", shifted))[0] - struct.unpack("<q", struct.pack("<d", shift))[0]
    return math.ldexp(value, n)


_SERIES = (
    "0x1.5555555555556p-3",
    "0x1.5555555555555p-5",
    "0x1.11111111109b4p-7",
    "0x1.6c16c16c167e1p-10",
    "0x1.a01a01a7c3d59p-13",
    "0x1.a01a01a47adc4p-16",
    "0x1.71de0daf7a6ccp-19",
    "0x1.27e4e1f5246c7p-22",
    "0x1.af38a71a18cb9p-26",
    "0x1.1f66de051eb02p-29",
)
