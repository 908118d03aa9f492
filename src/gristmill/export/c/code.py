"""C99 that every header has: elementary functions, the kernel, and arrays of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._plain import Description, Neighbours, Node

#: @P@ is the prefix of all names, @N@ the number type, @S@ the suffix of functions and constants in single precision
HEAD = """
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

typedef @N@ @P@_num;

/* a * b + c: fused where the machine does that quickly, as the library does. */
#ifndef @P@_FMA
#ifdef FP_FAST_FMA@F@
#define @P@_FMA(a, b, c) fma@S@((a), (b), (c))
#else
#define @P@_FMA(a, b, c) ((a) * (b) + (c))
#endif
#endif

static inline @P@_num @P@_max(@P@_num a, @P@_num b) { return a > b ? a : b; }
static inline @P@_num @P@_min(@P@_num a, @P@_num b) { return a < b ? a : b; }
static inline @P@_num @P@_abs(@P@_num a) { return a < 0 ? -a : a; }
static inline int @P@_finite(@P@_num a) { return a - a == 0; }
"""

EXP_DOUBLE = """
/* e^x within 2 ulp; 0 below e^-708. */
static inline @P@_num @P@_exp(@P@_num x) {
    static const @P@_num series[12] = {0x1.8abafa1485258p-26, 0x1.289792fd01531p-22, 0x1.71f4b75e60bf5p-19,
                                       0x1.a019b3747ae1cp-16, 0x1.a019f7c0d14f8p-13, 0x1.6c16c17a09cb5p-10,
                                       0x1.11111112d40cbp-7, 0x1.5555555553af1p-5, 0x1.5555555554eaep-3, 0.5, 1.0, 1.0};
    const @P@_num inside = x > 710.0 ? 710.0 : x;
    @P@_num whole, rest, sum = series[0], power;
    uint64_t bits;
    int i;
    if (!(x >= -708.0)) return x < 0 ? 0.0 : x;
    whole = @P@_FMA(inside, 0x1.71547652b82fep0, 0x1.8p52) - 0x1.8p52;
    rest = @P@_FMA(-whole, 0x1.62e42fefa0000p-1, inside);
    rest = @P@_FMA(-whole, 0x1.cf79abc9e3b39p-40, rest);
    for (i = 1; i < 12; ++i) sum = @P@_FMA(sum, rest, series[i]);
    bits = (uint64_t)((int64_t)whole + 1022) << 52;
    memcpy(&power, &bits, sizeof power);
    return sum * power * 2.0;
}
"""

EXP_SINGLE = """
/* e^x within 2 ulp; 0 below e^-87. */
static inline @P@_num @P@_exp(@P@_num x) {
    static const @P@_num series[7] = {0x1.6fef4ep-10f, 0x1.1257d8p-7f, 0x1.5553p-5f, 0x1.555466p-3f, 0.5f, 1.0f, 1.0f};
    const @P@_num inside = x > 89.0f ? 89.0f : x;
    @P@_num whole, rest, sum = series[0], power;
    uint32_t bits;
    int i;
    if (!(x >= -87.0f)) return x < 0 ? 0.0f : x;
    whole = @P@_FMA(inside, 0x1.715476p0f, 0x1.8p23f) - 0x1.8p23f;
    rest = @P@_FMA(-whole, 0x1.63p-1f, inside);
    rest = @P@_FMA(-whole, -0x1.bd0106p-13f, rest);
    for (i = 1; i < 7; ++i) sum = @P@_FMA(sum, rest, series[i]);
    bits = (uint32_t)((int32_t)whole + 126) << 23;
    memcpy(&power, &bits, sizeof power);
    return sum * power * 2.0f;
}
"""

#: each under the name that a kernel asks for it by
HELPERS = {
    "power": """
static inline @P@_num @P@_power(@P@_num base, unsigned degree) {
    @P@_num result = 1;
    for (; degree > 0; degree >>= 1) {
        if (degree & 1u) result *= base;
        base *= base;
    }
    return result;
}
""",
    "geometric": """
/* 1 + t + ... + t^(terms-1) */
static inline @P@_num @P@_geometric(@P@_num t, int terms) {
    @P@_num sum = 1;
    int i;
    for (i = 1; i < terms; ++i) sum = @P@_FMA(sum, t, (@P@_num)1);
    return sum;
}
""",
    "tanh": """
static inline @P@_num @P@_tanh(@P@_num x) {
    const @P@_num size = @P@_abs(x), s = x * x;
    const @P@_num far = 1 - 2 / (@P@_exp(size + size) + 1);
    const @P@_num near = size * (1 + s * ((@P@_num)(-1.0 / 3) + s * ((@P@_num)(2.0 / 15) +
                         s * ((@P@_num)(-17.0 / 315) + s * (@P@_num)(62.0 / 2835)))));
    const @P@_num value = size < (@P@_num)0.02 ? near : far;
    return x < 0 ? -value : value;
}
""",
}


def literal(value: float, single: bool) -> str:
    """A number as C reads it, bit for bit."""
    value = float(np.float32(value)) if single else float(value)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if not single:
        return repr(value)
    text = f"{value:.9g}"
    return (text if "." in text or "e" in text else f"{text}.0") + "f"


def array(name: str, values: Any, single: bool, kind: str = "@P@_num") -> str:
    """A constant array of one or two dimensions."""
    table = np.asarray(values)
    shape = "".join(f"[{max(size, 1)}]" for size in table.shape)

    def one(value: Any) -> str:
        return str(int(value)) if table.dtype.kind in "iub" else literal(value, single)

    if table.ndim == 1:
        body = _wrapped([one(value) for value in table] or ["0"])
    else:
        body = ",\n".join("    {" + ", ".join(one(value) for value in row) + "}" for row in table) or "    {0}"
    return f"static const {kind} {name}{shape} = {{\n{body}\n}};\n"


def _wrapped(parts: list[str]) -> str:
    lines = [", ".join(parts[at : at + 6]) for at in range(0, len(parts), 6)]
    return "    " + ",\n    ".join(lines)


def has_logarithm(program: tuple[Node, ...]) -> bool:
    """Whether k is a product of exponentials of distances, whose logarithm is a number where k is too small for one."""
    return {node[0] for node in program} <= {"gaussian", "laplacian", "product"}


def kernel(program: tuple[Node, ...], single: bool, direct: bool, log: bool = False) -> str:
    """k of a pair from its numbers, and k(x, x); direct: the squared distance is a sum of squares, in place of norms.

    log: the logarithm of k. requires: `has_logarithm`
    """
    wanted = {"polynomial": "power", "sigmoid": "tanh", "vovk": "geometric"}
    text = "".join(HELPERS[name] for name in sorted({wanted[node[0]] for node in program if node[0] in wanted}))
    pair, own = _Lines(program, single, direct, log), _Lines(program, single, direct)
    value = pair.emit(len(program) - 1, False)
    what = "The logarithm of the kernel" if log else "The kernel"
    text += f"\n/* {what}, from <x, y>, the two distances, <x, x> and <y, y>. */\n"
    text += (
        "static inline @P@_num @P@_kernel(@P@_num dot, @P@_num l1, @P@_num square, @P@_num xx, @P@_num yy) {\n"
        + "".join(f"    {line}\n" for line in pair.lines)
        + "    (void)dot, (void)l1, (void)square, (void)xx, (void)yy;\n"
        + f"    return {value};\n}}\n"
    )
    value = own.emit(len(program) - 1, True)
    text += (
        "static inline @P@_num @P@_self(@P@_num xx) {\n"
        + "".join(f"    {line}\n" for line in own.lines)
        + f"    (void)xx;\n    return {value};\n}}\n"
    )
    return text


class _Lines:
    """Statements of an expression; `self` means that y is x."""

    def __init__(self, program: tuple[Node, ...], single: bool, direct: bool, log: bool = False) -> None:
        self.program, self.single, self.direct, self.log = program, single, direct, log
        self.lines: list[str] = []

    def _let(self, value: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"const @P@_num {name} = {value};")
        return name

    def emit(self, at: int, self_: bool, norm: str = "xx") -> str:
        op, left, right, n, a, b = self.program[at]
        a_, b_ = literal(a, self.single), literal(b, self.single)
        dot, l1, square = (norm, "0", "0") if self_ else ("dot", "l1", "square")
        leaf = {
            "linear": dot,
            "polynomial": f"@P@_power({a_} * {dot} + {b_}, {n}u)",
            "gaussian": f"@P@_exp(-{a_} * {square})" if not self_ else "1",
            "laplacian": f"@P@_exp(-{a_} * {l1})" if not self_ else "1",
            "exponential": f"@P@_exp({a_} * {dot})",
            "vovk": f"@P@_geometric({dot}, {n})" if n > 0 else f"1 / (1 - {dot})",
            "sigmoid": f"@P@_tanh({a_} * {dot} + {b_})",
            "manhattan": f"-({l1})",
            "squared_euclidean": f"-({square})",
        }
        if op in leaf:
            return self._let(leaf[op].replace("@P@_exp", "") if self.log else leaf[op])
        value = "" if op == "normalized" and self_ else self.emit(left, self_, norm)
        if op == "multiple":
            return self._let(f"{value} * {a_}")
        if op == "normalized":
            x = self.emit(left, True, norm)
            y = x if self_ else self.emit(left, True, "yy")
            scale = self._let(f"{x} * {y}")
            top = "1" if self_ else f"{value} / sqrt@S@({scale})"
            return self._let(f"{scale} > 0 ? {top} : 0")
        other = self.emit(right, self_, norm)
        return self._let(f"{value} {'+' if op == 'sum' or self.log else '*'} {other}")


def needs(program: tuple[Node, ...]) -> tuple[bool, bool, bool]:
    """Whether a kernel needs dot products, distances by coordinates, and norms."""
    ops = {node[0] for node in program}
    l1 = bool(ops & {"laplacian", "manhattan"})
    square = bool(ops & {"gaussian", "squared_euclidean"})
    dots = bool(ops & {"linear", "polynomial", "exponential", "vovk", "sigmoid"})
    return dots, l1, square


def row_kernel(program: tuple[Node, ...], direct: bool, name: str = "pair") -> str:
    """k of a row and a stored point, from their coordinates and squared norms."""
    dots, l1, square = needs(program)
    by_norms = square and not direct
    lines = ["@P@_num dot = 0, l1 = 0, square = 0;", "int j;", "for (j = 0; j < @U@_ROW; ++j) {"]
    if dots or by_norms:
        lines.append("    dot = @P@_FMA(x[j], y[j], dot);")
    if l1:
        lines.append("    l1 += @P@_abs(x[j] - y[j]);")
    if square and direct:
        lines.append("    square = @P@_FMA(x[j] - y[j], x[j] - y[j], square);")
    if not (dots or by_norms or l1 or square):
        lines.append("    (void)x, (void)y;")
    lines.append("}")
    if by_norms:
        lines.append("square = @P@_max((xx + yy) - 2 * dot, 0);")
    lines.append("return @P@_kernel(dot, l1, square, xx, yy);")
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"static inline @P@_num @P@_{name}(const @P@_num *x, @P@_num xx, const @P@_num *y, @P@_num yy) {{\n{body}}}\n"
    )


NORM = """
static inline @P@_num @P@_norm2(const @P@_num *x) {
    @P@_num sum = 0;
    int j;
    for (j = 0; j < @U@_ROW; ++j) sum = @P@_FMA(x[j], x[j], sum);
    return sum;
}
/* Sixteen running sums, then one tree: the order in which the library adds up. */
static inline @P@_num @P@_tree(@P@_num *lanes) {
    int half, l;
    for (half = 8; half > 0; half /= 2)
        for (l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
}
"""

RANKED = """
/* Beyond the ends a score grows with a logarithm. */
static inline @P@_num @P@_beyond(@P@_num away, @P@_num unit) {
    const @P@_num l = log1p@S@(away / unit);
    return l / (1 + l / 2);
}
/* The normal score of the rank of a value among those that column j had. */
static inline @P@_num @P@_ranked(@P@_num x, int j) {
    const @P@_num *knots = @P@_knots[j], *scores = @P@_knot_scores[j];
    int i = 0;
    if (!@P@_ranks[j]) return x;
    if (!(@P@_low_unit[j] > 0)) return 0;
    if (x < knots[0]) return scores[0] - @P@_beyond(knots[0] - x, @P@_low_unit[j]);
    if (x >= knots[@LAST@]) return scores[@LAST@] + @P@_beyond(x - knots[@LAST@], @P@_high_unit[j]);
    while (x >= knots[i + 1]) ++i;
    return scores[i] + (x - knots[i]) / (knots[i + 1] - knots[i]) * (scores[i + 1] - scores[i]);
}
"""

DRAW = """
/* What is farther out than five standard deviations is drawn in. */
static inline @P@_num @P@_soft_clipped(@P@_num z) {
    const @P@_num over = @P@_abs(z) - 5;
    const @P@_num inside = 5 + over / (1 + over / 5);
    return over > 0 ? (z > 0 ? inside : -inside) : z;
}
"""

PROBABILITIES = """
/* None is larger than that of the class with the largest score. */
static inline void @P@_agree(int best, @P@_num *out) {
    const @P@_num limit = out[best] * (1 - (@P@_num)1e-9);
    @P@_num sum = 0;
    int c, over = 0;
    for (c = 0; c < @U@_CLASSES; ++c) {
        if (c != best && out[c] > limit) out[c] = limit, over = 1;
        sum += out[c];
    }
    if (over)
        for (c = 0; c < @U@_CLASSES; ++c) out[c] /= sum;
}
/* The probability of each class, in the order of @U@_CLASS_NAMES, from the scores of the model's outputs. */
static inline void @P@_calibrated(const @P@_num *scores, @P@_num slope, const @P@_num *offsets, @P@_num *out) {
#if @U@_OUTPUTS == 1
    @P@_num t = @P@_max(@P@_min(slope * scores[0] + offsets[0], 30), -30), e = @P@_exp(-@P@_abs(t));
    const int likelier = (t >= 0) == (@U@_SIGN > 0);
    out[likelier] = 1 / (1 + e);
    out[!likelier] = e / (1 + e);
#else
    @P@_num top = slope * scores[0] + offsets[0], sum = 0;
    int c;
    for (c = 1; c < @U@_OUTPUTS; ++c) top = @P@_max(top, slope * scores[c] + offsets[c]);
    for (c = 0; c < @U@_OUTPUTS; ++c) {
        const @P@_num e = @P@_exp(@P@_max(slope * scores[c] + offsets[c] - top, -30));
        out[@P@_place[c]] = e;
        sum += e;
    }
    for (c = 0; c < @U@_OUTPUTS; ++c) out[c] /= sum;
#endif
    @P@_agree(@P@_class_of(scores), out);
}
"""

NEAR = """
/* The logarithm of how far a kernel value is. */
static inline @P@_num @P@_farness(@P@_num value) {
    return log@S@(@FAR@ + @TOUCHING@);
}
/* How near the nearest stored points are, beside how near those were to theirs; work: @U@_WORK numbers. */
static inline void @P@_scores(const @P@_num *x, @P@_num *work, @P@_num *scores) {
    @P@_num *const values = work + @U@_ROW, *const nearest = values + @U@_POINTS; /* largest first */
    const @P@_num xx = @P@_norm2((@P@_row(x, work), work));
    @P@_num sum = 0, known = 0, last;
    int i, j;
    for (i = 0; i < @U@_POINTS; ++i) {
        const @P@_num k = @P@_pair(work, xx, @P@_points[i], @P@_norms[i]), value = values[i] = @VALUE@;
        if (i >= @U@_NEIGHBOURS && !(value > nearest[@U@_NEIGHBOURS - 1])) continue;
        for (j = i < @U@_NEIGHBOURS ? i : @U@_NEIGHBOURS - 1; j > 0 && nearest[j - 1] < value; --j)
            nearest[j] = nearest[j - 1];
        nearest[j] = value;
    }
    last = nearest[@U@_NEIGHBOURS - 1];
    for (i = 0; i < @U@_POINTS; ++i) /* all that are as far as the last, up to rounding */
        if (values[i] >= last - @P@_abs(last) * @EQUAL@ && @P@_reaches[i] == @P@_reaches[i])
            sum += @P@_reaches[i], known += 1;
    scores[0] = (known > 0 ? @P@_exp(sum / known - @P@_farness(last)) : 1) + @P@_intercept[0];
}
"""


def near(body: Neighbours, single: bool, low: float) -> str:
    """Scores by neighbours; low: of the library's exponentials, which are 0 below it.

    requires: one point at least, which `Density` has after its first event.
    """
    text = f"#define @U@_NEIGHBOURS {body.count}\n" + array("@P@_reaches", body.reaches, single) + NEAR
    if has_logarithm(body.program):
        far = f"@P@_max(@P@_min(-value, {literal(-math.log(1e-290), single)}), 0)"
        value = f"k >= {literal(low, single)} ? k : {literal(-1e4, single)}"
    else:
        far, value = f"@P@_max(-log@S@(@P@_max(value, {literal(1e-37 if single else 1e-290, single)})), 0)", "k"
    text = text.replace("@FAR@", far).replace("@VALUE@", value)
    text = text.replace("@EQUAL@", literal(1e-6 if single else 1e-12, single))
    return text.replace("@TOUCHING@", literal(1e-3, single))


LABELS = """
/* The class of scores: its place in @U@_CLASS_NAMES. */
static inline int @P@_class_of(const @P@_num *scores) {
#if @U@_OUTPUTS == 1
    return @U@_CLASSES == 1 ? 0 : (@U@_SIGN * scores[0] >= 0);
#else
    int c, best = 0;
    @P@_num shown[@U@_OUTPUTS];
    for (c = 0; c < @U@_OUTPUTS; ++c) shown[@P@_place[c]] = scores[c];
    for (c = 1; c < @U@_OUTPUTS; ++c)
        if (shown[c] > shown[best]) best = c;
    return best;
#endif
}
"""


def check(found: Description, single: bool, learns: bool) -> str:
    """`check`: whether the built-in row has the library's scores; of one that learns, before it has learned anything."""
    expected = np.ravel(found.check["decision_function"]).astype(np.float64)
    if found.task == "classification" and found.outputs == 1:
        expected = expected * found.sign
    elif found.task == "classification":
        expected = expected[[found.order.index(at) for at in range(len(found.labels))]]
    if learns:
        expected = expected + found.offset  # its scores are measured from nothing
    row = np.array([found.check_inputs[name] for name in found.names], dtype=np.float64)
    tolerance = "1e-3" if single or found.experts[0].single else "1e-9"
    return (
        array("@P@_check_row", row, single)
        + array("@P@_check_scores", expected, single)
        + f"static inline int @P@_check({'const @P@_state *state, ' if learns else ''}@P@_num *work) {{\n"
        "    @P@_num scores[@U@_OUTPUTS];\n    int o, fine = 1;\n"
        + (
            "    if (!@P@_scores(state, @P@_check_row, work, scores)) return 0;\n"
            if learns
            else "    @P@_scores(@P@_check_row, work, scores);\n"
        )
        + "    for (o = 0; o < @U@_OUTPUTS; ++o)\n"
        f"        fine &= @P@_abs(scores[o] - @P@_check_scores[o]) <= (@P@_num){tolerance} * "
        "(1 + @P@_abs(@P@_check_scores[o]));\n"
        "    return fine;\n}\n"
    )
