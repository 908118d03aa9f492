"""`to_c`: a fitted model as one C99 header that predicts, and learns where that is wanted."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..._version import __version__
from .._checks import refuse_beyond_single
from .._description import describe, snapshot
from .._learning import learning_of
from .._plain import COVERAGES, AdditiveExpansion, Description, Detector, Expansion, ExportError, Neighbours, RankMaps
from . import code, learning, state

_COMMENT = """/* {name}.h: {kind}, written by gristmill {version}.
 *
 * task:     {task}
 * columns:  {columns}
 * classes:  {classes}
 * numbers:  {number}
 * stored:   {points}
 * flash:    about {flash:,} bytes of constants
 * RAM:      {ram}
 * libm:     {libm}
 * check:    {prefix}_check() is 1 where this machine gives the library's answer to the built-in row
 */
"""


def to_c(model: object, learn: bool = False, number: str = "float64", name: str = "gristmill") -> str:
    """A fitted model as one C99 header: no heap, no other file, work space by the caller.

    Parameters
    ----------
    model : fitted KernelClassifier, KernelRegressor or KernelNovelty, alone or `Prepared` over columns of numbers
    learn : bool, default=False
        The device goes on learning, in a state of fixed size: with the rules Perceptron, PassiveAggressive, SGD (NORMA) or
        Implicit (ILK) and the budgets DropOldest, DropSmallest or Merge, columns as they are or scale="standard".
    number : {"float64", "float32"}, default="float64"
        The type of all numbers. In double the answers are the library's to 1e-12.
    name : str, default="gristmill"
        Prefix of every name in the header.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import DropOldest, Gaussian, KernelClassifier
    >>> from gristmill.export import to_c
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelClassifier(Gaussian(1.0), budget=DropOldest(20)).fit(X, X[:, 0] > 0)
    >>> to_c(model, number="float32").count("malloc")
    0
    """
    if number not in ("float64", "float32"):
        raise ExportError(f"to_c: number must be 'float64' or 'float32', got {number!r}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ExportError(f"to_c: name must be a name of C, such as 'pump', got {name!r}")
    model = snapshot(model)
    found = describe(model)
    _refuse(found)
    single = number == "float32"
    if single:
        refuse_beyond_single(found)
    if learn:
        learns = learning_of(model)
        text = common(found, number, direct=single) + learning.text(found, learns, single)
        size = state.dtype_of(state.fields(found, learns, single), single).itemsize
        ram = f"{size:,} bytes of state, {learning.work(found, learns)} numbers of work space, both by the caller"
    else:
        text, ram = _predicting(found, number), f"{_work(found)} numbers of work space by the caller"
    text = _named(text, name, single)
    return _comment(found, name, number, text, ram) + _guarded(text, name)


def _named(text: str, name: str, single: bool) -> str:
    text = text.replace("@U@", name.upper()).replace("@P@", name)
    text = text.replace("@N@", "float" if single else "double").replace("@S@", "f" if single else "")
    return text.replace("@F@", "F" if single else "")


def _guarded(text: str, name: str) -> str:
    guard = f"{name.upper()}_H"
    return f"#ifndef {guard}\n#define {guard}\n{text}\n#endif\n"


def _comment(found: Description, name: str, number: str, text: str, ram: str) -> str:
    body: Any = found.experts[0].body
    size, near = 4 if number == "float32" else 8, isinstance(body, Neighbours)
    used = [part for part in ("sqrt", "fma", "log1p", "log") if re.search(rf"\b{part}f?\(", text)]
    names = {"sqrt": "sqrt", "log": "log", "log1p": "log1p", "fma": "fma where FP_FAST_FMA says that it is quick"}
    libm = ", ".join(names[part] for part in used) or "nothing"
    return _COMMENT.format(
        name=name,
        prefix=name,
        kind=found.kind,
        version=__version__,
        task=found.task,
        columns=_safe(", ".join(found.names)),
        classes=_safe(", ".join(str(found.labels[at]) for at in found.order)) or "none",
        number=number,
        points=f"{len(body.points)} points of {found.rows.width} columns",
        flash=size * (body.points.size + len(body.points) + (len(body.points) if near else body.coefs.size)),
        ram=ram,
        libm=libm,
    )


def _safe(text: str) -> str:
    """Text that can stand in a comment."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text).encode("ascii", "replace").decode()
    return re.sub(r"\?(?=\?)", "? ", plain.replace("\\", "/").replace("*/", "* /").replace("/*", "/ *"))


def _string(text: str) -> str:
    """Text as a string of C: UTF-8, and all that could mean something else as a number."""
    plain = {byte for byte in range(32, 127)} - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def _refuse(found: Description) -> None:
    if isinstance(found.mixture, Detector):
        raise ExportError(
            f"{found.kind}: a sample with trees is exported to ONNX and JSON; in C export a KernelNovelty"
        )
    if found.mixture is not None:
        raise ExportError(f"{found.kind}: a mixture of experts is exported to ONNX; in C export its leader_")
    body = found.experts[0].body
    if not isinstance(body, Expansion | AdditiveExpansion | Neighbours):
        kinds = {
            "MaclaurinFeatures": "a map of random features",
            "FourierFeatures": "a map of random features",
            "Constant": "a race before its first targets are measured",
        }
        raise ExportError(f"{found.kind}: {kinds[type(body).__name__]} is exported to ONNX, not to C")
    for column in found.rows.table or ():
        raise ExportError(
            f"{found.kind}: C takes rows of numbers, and the table holds {column.name!r} and perhaps others that are "
            "categories, booleans, times or numbers with missing values; export it to ONNX"
        )


def _work(found: Description) -> int:
    """Numbers of work space of a header that predicts: a row; of neighbours their kernel values as well."""
    body = found.experts[0].body
    return max(found.rows.width, 1) + (len(body.points) + body.count if isinstance(body, Neighbours) else 0)


def _names(found: Description) -> str:
    sizes = {"FEATURES": found.rows.width, "ROW": found.rows.width, "OUTPUTS": found.outputs}
    text = "".join(f"#define @U@_{name} {size}\n" for name, size in sizes.items())
    if found.task == "classification":
        labels = ", ".join(_string(str(found.labels[at])) for at in found.order)
        text += f"#define @U@_CLASSES {len(found.labels)}\n#define @U@_SIGN ({int(found.sign)})\n"
        text += f"#define @U@_CLASS_NAMES {{{labels}}}\n"
        place = [found.order.index(at) for at in range(len(found.labels))]
        if found.outputs > 1:
            text += code.array("@P@_place", np.array(place, dtype=np.int64), False, "int")
    return text


def common(found: Description, number: str, direct: bool) -> str:
    """Names, elementary functions, and the kernel of stored points."""
    single = number == "float32"
    body: Any = found.experts[0].body
    text = _names(found) + code.HEAD + (code.EXP_SINGLE if single else code.EXP_DOUBLE) + code.NORM
    if isinstance(body, Expansion | Neighbours):
        log = isinstance(body, Neighbours) and code.has_logarithm(body.program)
        text += code.kernel(body.program, single, direct, log) + code.row_kernel(body.program, direct)
    if found.task == "classification":
        text += code.LABELS + (code.PROBABILITIES if len(found.labels) > 1 else "")
    return text


# ---- headers that predict -----------------------------------------------------------------------------------------


def _predicting(found: Description, number: str) -> str:
    single = number == "float32"
    expert, body = found.experts[0], found.experts[0].body
    assert isinstance(body, Expansion | AdditiveExpansion | Neighbours)
    text = common(found, number, direct=single)
    text += f"#define @U@_POINTS {len(body.points)}\n#define @U@_WORK {_work(found)}\n"
    text += code.array("@P@_points", body.points, single) if len(body.points) else ""
    if len(body.points) and not isinstance(body, Neighbours):
        text += code.array("@P@_coefs", body.coefs, single)
    if len(body.points) and not isinstance(body, AdditiveExpansion):
        text += code.array("@P@_norms", (body.points * body.points).sum(axis=1), single)
    text += code.array("@P@_intercept", expert.intercept - found.offset, single)
    text += _scaling(found, single)
    text += _curve(body, single) if isinstance(body, AdditiveExpansion) else ""
    low = -87.0 if expert.single else -708.0
    text += code.near(body, single, low) if isinstance(body, Neighbours) else _scores(found, body)
    return text + _answers(found, single) + code.check(found, single, learns=False)


def _scaling(found: Description, single: bool) -> str:
    """A row as the kernel sees it, in `out`."""
    rows, text = found.rows, ""
    lines = ["@P@_num z = x[j];"]
    if rows.fills is not None:
        text += code.array("@P@_fills", rows.fills, single)
        lines.append("if (z != z) z = @P@_fills[j];")
    if isinstance(rows.scaling, RankMaps):
        text += _rank_maps(rows.scaling, single)
        lines.append("z = @P@_ranked(z, j);")
    elif rows.scaling is not None:
        text += code.array("@P@_centre", rows.scaling.centre, single)
        text += code.array("@P@_spread", rows.scaling.spread, single)
        lines.append("z = (z - @P@_centre[j]) / @P@_spread[j];")
        if rows.scaling.soft_clips:
            text += code.DRAW
            lines.append("z = @P@_soft_clipped(z);")
    if rows.scaling is not None and rows.scaling.weights is not None:
        text += code.array("@P@_weights", rows.scaling.weights, single)
        lines.append("z *= @P@_weights[j];")
    lines.append("out[j] = z;")
    body = "".join(f"        {line}\n" for line in lines)
    return text + (
        "static inline void @P@_row(const @P@_num *x, @P@_num *out) {\n    int j;\n"
        f"    for (j = 0; j < @U@_FEATURES; ++j) {{\n{body}    }}\n}}\n"
    )


def _rank_maps(maps: RankMaps, single: bool) -> str:
    return (
        code.array("@P@_ranks", maps.scaled, single, "unsigned char")
        + code.array("@P@_knots", maps.knots, single)
        + code.array("@P@_knot_scores", maps.scores, single)
        + code.array("@P@_low_unit", maps.low_unit, single)
        + code.array("@P@_high_unit", maps.high_unit, single)
        + code.RANKED.replace("@LAST@", str(maps.knots.shape[1] - 1))
    )


def _curve(body: AdditiveExpansion, single: bool) -> str:
    """Kernels of one coordinate, one after the other."""
    import math

    lines = ["@P@_num total = 0, p, q, apart, least, part;", "(void)least;"]
    for order, gamma, column, other, weight in body.coordinates:
        p, q = (f"{v}[{column}]" if other is None else f"{v}[{column}] * {v}[{other}]" for v in "xy")
        lines += [f"p = {p}, q = {q};", "apart = @P@_abs(p - q), least = @P@_min(p, q);"]
        if order < 0:
            lines.append(f"part = @P@_exp(-{code.literal(gamma, single)} * apart);")
        else:
            lines.append("part = 1;")
            lines += [f"part += @P@_power(p * q, {r}u);" for r in range(1, order + 1)]
            for r in range(order + 1):
                power = 2 * order - r + 1
                share = code.literal(math.comb(order, r) / power, single)
                lines.append(f"part += {share} * @P@_power(least, {power}u) * @P@_power(apart, {r}u);")
        gap = "if (part == part) " if body.skips_missing else ""
        lines.append(f"{gap}total += {code.literal(weight, single)} * part;")
    lines.append("return total;")
    text = code.HELPERS["power"] if any(part[0] >= 0 for part in body.coordinates) else ""
    inner = "".join(f"    {line}\n" for line in lines)
    return text + f"static inline @P@_num @P@_curves(const @P@_num *x, const @P@_num *y) {{\n{inner}}}\n"


def _scores(found: Description, body: Expansion | AdditiveExpansion) -> str:
    value = (
        "@P@_pair(work, xx, @P@_points[i], @P@_norms[i])"
        if isinstance(body, Expansion)
        else "@P@_curves(work, @P@_points[i])"
    )
    own = (
        "    const @P@_num xx = @P@_norm2((@P@_row(x, work), work));\n"
        if isinstance(body, Expansion)
        else "    @P@_row(x, work);\n"
    )
    target = ""
    if found.target is not None:
        pairs = zip(found.target[1], found.target[0], strict=True)
        target = "".join(f"    scores[{o}] = @SPREAD{o}@ * scores[{o}] + @CENTRE{o}@;\n" for o, _ in enumerate(pairs))
    loop = (
        "    for (i = 0; i < @U@_POINTS; ++i) {\n"
        f"        const @P@_num k = {value};\n"
        "        for (o = 0; o < @U@_OUTPUTS; ++o)\n"
        "            lanes[o][i & 15] = @P@_FMA(@P@_coefs[i][o], k, lanes[o][i & 15]);\n    }\n"
        if len(body.points)
        else "    (void)i;\n" + ("    (void)xx;\n" if isinstance(body, Expansion) else "")
    )
    text = (
        "\n/* The scores of a row, an output each; work: @U@_WORK numbers. */\n"
        "static inline void @P@_scores(const @P@_num *x, @P@_num *work, @P@_num *scores) {\n"
        f"{own}"
        "    @P@_num lanes[@U@_OUTPUTS][16];\n    int i, o;\n    memset(lanes, 0, sizeof lanes);\n"
        f"{loop}"
        "    for (o = 0; o < @U@_OUTPUTS; ++o) scores[o] = @P@_tree(lanes[o]) + @P@_intercept[o];\n"
        f"{target}}}\n"
    )
    if found.target is not None:
        for o, (centre, spread) in enumerate(zip(*found.target, strict=True)):
            for word, number in (("SPREAD", spread), ("CENTRE", centre)):
                text = text.replace(f"@{word}{o}@", f"(@P@_num){float(number)!r}")
    return text


def _answers(found: Description, single: bool) -> str:
    if found.task == "classification":
        text = (
            "\n/* The place of the class of a row in @U@_CLASS_NAMES. */\n"
            "static inline int @P@_predict(const @P@_num *x, @P@_num *work) {\n"
            "    @P@_num scores[@U@_OUTPUTS];\n    @P@_scores(x, work, scores);\n    return @P@_class_of(scores);\n}\n"
        )
        if len(found.labels) > 1:
            assert found.calibration is not None
            slope = code.literal(found.calibration.slope * found.calibration.unit, single)
            text += code.array("@P@_offsets", found.calibration.offsets, single)
            text += (
                "static inline void @P@_probabilities(const @P@_num *x, @P@_num *work, @P@_num *out) {\n"
                "    @P@_num scores[@U@_OUTPUTS];\n    @P@_scores(x, work, scores);\n"
                f"    @P@_calibrated(scores, {slope}, @P@_offsets, out);\n}}\n"
            )
        else:
            text += (
                "static inline void @P@_probabilities(const @P@_num *x, @P@_num *work, @P@_num *out) {\n"
                "    (void)x, (void)work;\n    out[0] = 1;\n}\n"
            )
        return text
    if found.task == "novelty":
        return (
            "\n/* -1 for an alarm, 1 for a familiar row. */\n"
            "static inline int @P@_predict(const @P@_num *x, @P@_num *work) {\n"
            "    @P@_num scores[@U@_OUTPUTS];\n    @P@_scores(x, work, scores);\n    return scores[0] < 0 ? -1 : 1;\n}\n"
        )
    assert found.half_widths is not None
    levels = ", ".join(map(str, COVERAGES))
    return (
        f"\n/* Half widths of the intervals around a score, by output, for the coverages {levels}. */\n"
        + code.array("@P@_half_widths", found.half_widths, single)
        + "static inline void @P@_predict(const @P@_num *x, @P@_num *work, @P@_num *out) { @P@_scores(x, work, out); }\n"
    )
