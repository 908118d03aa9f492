"""C99 that goes on learning: the state, scores from it, and the step of one event, which is taken whole or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._learning import Learning
from .._plain import Description
from . import adapt, code, rules, state

_VALUES = """
/* Kernel values of a row at all stored points. */
static inline void @P@_kernel_row(const @P@_state *state, const @P@_num *row, @P@_num xx, @P@_num *out) {
    int i;
    (void)xx;
    for (i = 0; i < (int)state->size; ++i) out[i] = @P@_pair(row, @XX@, state->points[i], @YY@);
}
"""

_SHRINK = """
/* All coefficients times a factor; 0 forgets the points. */
static inline void @P@_shrink(@P@_state *state, @P@_num factor) {
    int i, o;
    if (factor == 0) {
        state->size = 0, state->scale = 1;
        return;
    }
    state->scale *= factor;
    if (state->scale >= @LOW@ && state->scale <= @HIGH@) return;
    for (i = 0; i < (int)state->size; ++i)
        for (o = 0; o < @U@_OUTPUTS; ++o) state->coefs[i][o] *= state->scale;
    state->scale = 1;
}
"""

_SCORES = """
/* Scores of a row in `row`, an output each, in the units of the stored labels. */
static inline void @P@_f(const @P@_state *state, const @P@_num *row, const @P@_num *values, @P@_num *scores) {
    @P@_num lanes[@U@_OUTPUTS][16];
    int i, o;
    @XX_DECLARED@
    memset(lanes, 0, sizeof lanes);
    for (i = 0; i < (int)state->size; ++i) {
        const @P@_num k = values ? values[i] : @P@_pair(row, @XX@, state->points[i], @YY@);
        for (o = 0; o < @U@_OUTPUTS; ++o) lanes[o][i & 15] = @P@_FMA(state->coefs[i][o], k, lanes[o][i & 15]);
    }
    for (o = 0; o < @U@_OUTPUTS; ++o) scores[o] = state->intercept[o] + state->scale * @P@_tree(lanes[o]);
}

/* The scores of a row, an output each; work: @U@_WORK numbers. 1, or 0 where the row holds what is no number. */
static inline int @P@_scores(const @P@_state *state, const @P@_num *x, @P@_num *work, @P@_num *scores) {
    if (!@P@_row(state, x, work, 0)) return 0;
    @P@_f(state, work, 0, scores);
@OUTSIDE@    return 1;
}
"""

_MEAN_TARGET = """
static inline double @P@_mean_target(const @P@_state *state) {
    return state->target[0] + state->target[2] / state->target[1];
}
"""

_STORE = """
static inline void @P@_store(@P@_state *state, int slot, const @P@_num *row, @P@_num xx, const @P@_num *coefs,
                             @P@_num label) {
    int o;
    (void)xx;
    memcpy(state->points[slot], row, sizeof state->points[slot]);
    for (o = 0; o < @U@_OUTPUTS; ++o) state->coefs[slot][o] = coefs[o] / state->scale;
    state->labels[slot] = label, state->stamp[slot] = (uint32_t)state->seen;
@NORMS@}
"""

_ENTER = {
    "DropOldest": """    if (full) entry = @P@_choose_slot(state);
    @P@_shrink(state, step.shrink);
    if (stores && entry.slot >= 0) {
        const int slot = full ? entry.slot : (int)state->size++;
        @P@_store(state, slot, row, xx, coefs, stored);
    }
""",
    "Merge": """    if (full) {
        mine = @P@_best_partner(state, values, -1);
        entry = @P@_choose_slot(state, coefs, step.shrink, self, mine, work + @U@_ROW + @U@_CAPACITY);
    }
    @P@_shrink(state, step.shrink);
    if (stores && entry.slot < 0) {
        for (o = 0; entry.onto >= 0 && o < @U@_OUTPUTS; ++o)
            state->coefs[entry.onto][o] += coefs[o] * entry.share / state->scale;
    } else if (stores) {
        const int slot = full ? entry.slot : (int)state->size;
        for (o = 0; full && entry.onto >= 0 && o < @U@_OUTPUTS; ++o)
            state->coefs[entry.onto][o] += entry.share * state->coefs[slot][o];
        if (!full) ++state->size;
        @P@_store(state, slot, row, xx, coefs, stored);
        @P@_update_partners(state, slot, full, values, self, mine);
    }
""",
}
_ENTER["DropSmallest"] = _ENTER["DropOldest"].replace(
    "@P@_choose_slot(state)", "@P@_choose_slot(state, coefs, step.shrink)"
)

_LEARN = """
/* One event: @ABOUT@. work: @U@_WORK numbers. 1 where it was learned; 0 where something in it is no number, is out of range
   or would make a coefficient overflow, and nothing has changed. */
static inline int @P@_learn(@P@_state *state, const @P@_num *x, @ARGUMENT@@P@_num *work) {
    @P@_num *const row = work, *const values = work + @U@_ROW, *const fresh = work + @U@_FRESH;
    @P@_num scores[@U@_OUTPUTS], coefs[@U@_OUTPUTS], self, f, y, stored, xx = 0;
    @P@_step step;
    @P@_entry entry = {0, -1, 0};
    int o, own = 0, rival = 0, full, stores;
@DECLARED@    if (!@P@_next_row(state, x, row, fresh)) return 0;
@LABEL@    @NORM2@
    @P@_kernel_row(state, row, xx, values);
    @P@_f(state, row, values, scores);
    for (o = 0; o < @U@_OUTPUTS; ++o)
        if (!@P@_finite(scores[o])) return 0;
    self = @P@_self(xx);
    f = scores[0];
@TRIAL@    step = @P@_rule(f, y, @SELF@, state->steps + 1, @WIDTH@);
    if (!(@P@_abs(step.coefficient) <= @MOST@) || !@P@_finite(self)) return 0;
    for (o = 0; o < @U@_OUTPUTS; ++o) coefs[o] = 0;
    coefs[own] = step.coefficient;
    if (rival != own) coefs[rival] = -step.coefficient;
    stores = step.coefficient != 0;
    full = stores && step.shrink != 0 && state->size == @U@_CAPACITY;
@ENTER@    state->intercept[own] += step.intercept;
    if (rival != own) state->intercept[rival] -= step.intercept;
@KEEP_WIDTH@@JUDGE@    @P@_count_row(state, x, fresh);
    ++state->steps, ++state->seen;
@AFTER@    return 1;
}
"""

_RIVAL = """    own = code, rival = own == 0 ? 1 : 0;
    for (o = rival + 1; o < @U@_OUTPUTS; ++o)
        if (o != own && scores[o] > scores[rival]) rival = o;
    f = scores[own] - scores[rival], y = 1;
"""


def text(found: Description, learning: Learning, single: bool) -> str:
    """Everything after the functions that headers share."""
    body: Any = found.experts[0].body
    norms = state.has_norms(found, single)
    scaled = learning.target is not None
    made = f"#define @U@_CAPACITY {learning.capacity}\n#define @U@_WORK {work(found, learning)}\n"
    made += f"#define @U@_FRESH (@U@_WORK - {_fresh(found, learning)})\n"
    made += state.struct(state.fields(found, learning, single), single)
    made += adapt.columns(learning, single)
    made += _MEAN_TARGET if scaled else ""
    parts = _VALUES + _SHRINK + _SCORES.replace("@OUTSIDE@", _outside(found, scaled)) + _STORE
    parts = parts.replace("@XX_DECLARED@", "const @P@_num xx = @P@_norm2(row);" if norms else "(void)row;")
    parts = parts.replace("@XX@", "xx" if norms else "0").replace("@YY@", "state->norms[i]" if norms else "0")
    parts = parts.replace("@NORMS@", "    state->norms[slot] = xx;\n" if norms else "")
    low = 1e-20 if single else 1e-100
    made += parts.replace("@LOW@", code.literal(low, single)).replace("@HIGH@", code.literal(1 / low, single))
    made += rules.rule(learning, found.task, single) + rules.budget(learning, norms)
    made += _answers(found, learning, single)
    made += _learn(found, learning, single, _uses_self(body.program))
    return made + code.check(found, single, learns=True)


def _fresh(found: Description, learning: Learning) -> int:
    return 0 if learning.moments is None else 2 * found.rows.width


def work(found: Description, learning: Learning) -> int:
    """Numbers of work space: a row, its kernel values, those of a stored point to merge, new moments."""
    rows = 2 if learning.budget == "Merge" else 1
    return found.rows.width + rows * learning.capacity + _fresh(found, learning)


def _uses_self(program: Any) -> bool:
    return program[-1][0] not in ("gaussian", "laplacian")


def _margin(learning: Learning, single: bool) -> str:
    if "rule.width" in learning.core:
        return "state->width"
    return code.literal(rules.first_width(learning.rule), single)


def _outside(found: Description, scaled: bool) -> str:
    if not scaled:
        return ""
    return (
        "    scores[0] = (@P@_num)(state->target[5] > 0 ? state->target[4] + state->target[5] * (double)scores[0] :\n"
        "                @P@_mean_target(state));\n"
    )


def _answers(found: Description, learning: Learning, single: bool) -> str:
    if found.task == "classification":
        order = np.array(found.order, dtype=np.int64)
        return (
            code.array("@P@_code", order, False, "int")
            + adapt.calibration(single)
            + "\n/* The place of the class of a row in @U@_CLASS_NAMES; -1 where the row holds what is no number. */\n"
            "static inline int @P@_predict(const @P@_state *state, const @P@_num *x, @P@_num *work) {\n"
            "    @P@_num scores[@U@_OUTPUTS];\n"
            "    return @P@_scores(state, x, work, scores) ? @P@_class_of(scores) : -1;\n}\n"
            "static inline int @P@_probabilities(const @P@_state *state, const @P@_num *x, @P@_num *work, @P@_num *out) {\n"
            "    @P@_num scores[@U@_OUTPUTS];\n    if (!@P@_scores(state, x, work, scores)) return 0;\n"
            "    @P@_calibrated(scores, state->calibration[2] * @P@_unit(state), state->offsets, out);\n    return 1;\n}\n"
        )
    if found.task == "novelty":
        margin = _margin(learning, single) if type(learning.rule).__name__ in ("SGD", "Implicit") else "1"
        return (
            "\n/* -1 for an alarm, 1 for a familiar row, 0 where the row holds what is no number. */\n"
            "static inline int @P@_predict(const @P@_state *state, const @P@_num *x, @P@_num *work) {\n"
            "    @P@_num scores[@U@_OUTPUTS];\n    if (!@P@_scores(state, x, work, scores)) return 0;\n"
            f"    return scores[0] - {margin} < 0 ? -1 : 1;\n}}\n"
        )
    adapts = "rule.width" in learning.core and getattr(learning.rule.loss, "nu", None) is not None
    scaled = learning.target is not None
    return (
        adapt.intervals(single, scaled)
        + (adapt.targets(adapts) if scaled else "")
        + "\n/* The answer to a row; 1, or 0 where the row holds what is no number. */\n"
        "static inline int @P@_predict(const @P@_state *state, const @P@_num *x, @P@_num *work, @P@_num *out) {\n"
        "    return @P@_scores(state, x, work, out);\n}\n"
    )


def _learn(found: Description, learning: Learning, single: bool, uses_self: bool) -> str:
    scaled = learning.target is not None
    classes = found.task == "classification"
    many = classes and found.outputs > 1
    about, argument, label = {
        "classification": ("label is the place of its class in @U@_CLASS_NAMES", "int label, ", ""),
        "regression": ("target is the number to predict", "@P@_num target, ", ""),
        "novelty": ("a row that is familiar from now on", "", ""),
    }[found.task]
    declared, trial, judge, after = "", "", "", ""
    if classes:
        declared = "    int code;\n"
        label = "    if (label < 0 || label >= @U@_CLASSES) return 0;\n    code = @P@_code[label], stored = (@P@_num)code;\n"
        trial = _RIVAL if many else "    y = 2 * stored - 1;\n"
        judge = "    @P@_calibrate(state, scores, code);\n"
    elif found.task == "regression":
        label = "    if (!@P@_finite(target)) return 0;\n    stored = target;\n"
        if scaled:
            label = (
                "    if (!(@P@_abs(target) <= @LARGEST@)) return 0;\n"
                "    if (!(state->target[5] > 0)) { /* nothing is known about the units of the targets yet */\n"
                "        @P@_count_row(state, x, fresh), @P@_count_target(state, (double)target);\n"
                "        ++state->seen;\n        return 1;\n    }\n"
                "    stored = (@P@_num)(((double)target - state->target[4]) / state->target[5]);\n"
            )
            after = "    @P@_count_target(state, (double)target);\n"
        trial = "    y = stored;\n"
        judge = "    @P@_update_intervals(state, stored - scores[0]);\n"
    else:
        label = "    stored = 1;\n"
        trial = "    y = 1;\n"
    if learning.budget == "Merge":
        declared += "    @P@_best mine = {-1, 0, 0};\n"
    norm = "xx = @P@_norm2(row);\n    if (!@P@_finite(xx)) return 0;"
    if not (state.has_norms(found, single) or uses_self):
        norm = "(void)xx;"
    replaced = {
        "@ABOUT@": about,
        "@ARGUMENT@": argument,
        "@DECLARED@": declared,
        "@LABEL@": label,
        "@NORM2@": norm,
        "@TRIAL@": trial,
        "@SELF@": "2 * self" if many else "self",
        "@WIDTH@": _margin(learning, single),
        "@MOST@": code.literal(1e15 if single else 1e150, single),
        "@ENTER@": _ENTER[learning.budget],
        "@KEEP_WIDTH@": "    state->width = step.width;\n" if "rule.width" in learning.core else "",
        "@JUDGE@": judge,
        "@AFTER@": after,
        "@LARGEST@": code.literal(1e18 if single else 1e140, single),
    }
    made = _LEARN
    for word, value in replaced.items():
        made = made.replace(word, value)
    return made
