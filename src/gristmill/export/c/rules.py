"""Rules, losses and budgets in C99: an event's step from its score, and which stored point gives way."""

from __future__ import annotations

from typing import Any

from .._learning import Learning
from .code import literal

#: the derivative of each loss, with its sign turned; w is the width
_PUSH = {
    "Hinge": "y * f @STRICT@ w ? y : 0",
    "Logistic": "y * @P@_sigmoid(-y * f)",
    "Squared": "y - f",
    "EpsilonInsensitive": "@P@_abs(y - f) > w ? (y - f < 0 ? (@P@_num)-1 : 1) : 0",
    "Huber": "@P@_abs(y - f) > w ? (y - f < 0 ? (@P@_num)-1 : 1) : (y - f) / w",
    "Pinball": "y > f ? w : y < f ? w - 1 : 0",
}
_BEYOND = {
    "Hinge": "y * f @STRICT@ w",
    "EpsilonInsensitive": "@P@_abs(y - f) > w",
    "Huber": "@P@_abs(y - f) > w",
}

SIGMOID = """
/* 1 / (1 + e^-t) without overflow */
static inline @P@_num @P@_sigmoid(@P@_num t) {
    const @P@_num e = @P@_exp(-@P@_abs(t));
    return t >= 0 ? 1 / (1 + e) : e / (1 + e);
}
"""

#: what an event changes
STEP = """
typedef struct {
    @P@_num coefficient, shrink, intercept, width;
} @P@_step;
"""

_LOGISTIC_ROOT = """
/* The root of u = cap / (1 + exp(margin + u self)) in (0, cap): Newton, kept inside a shrinking bracket. */
static inline @P@_num @P@_root(@P@_num margin, @P@_num self, @P@_num cap) {
    @P@_num low = 0, high = cap, u = cap * @P@_sigmoid(-margin);
    int i;
    for (i = 0; i < 100 && high > low; ++i) {
        const @P@_num share = @P@_sigmoid(-(margin + u * self)), excess = u - cap * share;
        @P@_num next = u - excess / (1 + cap * self * share * (1 - share));
        if (excess > 0) high = u;
        else low = u;
        if (!(next > low && next < high)) next = (@P@_num)0.5 * (low + high);
        if (@P@_abs(next - u) <= @TINY@ * cap) return next;
        u = next;
    }
    return u;
}
"""


def rule(learning: Learning, task: str, single: bool) -> str:
    """`step`: f the score, y the label, self k(x, x), t the number of the step from 1, w the width of the loss."""
    value = learning.rule
    lines = {
        "Perceptron": _perceptron,
        "PassiveAggressive": _passive_aggressive,
        "SGD": _sgd,
        "Implicit": _implicit,
    }[type(value).__name__](value, task, single)
    name = type(getattr(value, "loss", None)).__name__
    head = SIGMOID if name == "Logistic" else ""
    if type(value).__name__ == "Implicit" and name == "Logistic":
        head += _LOGISTIC_ROOT.replace("@TINY@", literal(1e-7 if single else 1e-16, single))
    body = "".join(f"    {line}\n" for line in lines).replace("@STRICT@", "<" if task == "novelty" else "<=")
    return (
        head
        + STEP
        + "\nstatic inline @P@_step @P@_rule(@P@_num f, @P@_num y, @P@_num self, uint64_t t, @P@_num w) {\n"
        + "    @P@_step step = {0, 1, 0, 0};\n    (void)self, (void)t;\n    step.width = w;\n"
        + body
        + "    return step;\n}\n"
    )


def _perceptron(_: object, __: str, ___: bool) -> list[str]:
    return ["if (y * f <= 0) step.coefficient = y;"]


def _passive_aggressive(rule: Any, task: str, single: bool) -> list[str]:
    limit, epsilon = literal(rule.C, single), literal(rule.epsilon, single)
    if task == "regression":
        lines = [f"const @P@_num loss = @P@_abs(y - f) - {epsilon}, sign = y - f < 0 ? (@P@_num)-1 : 1;"]
    else:
        lines = ["const @P@_num loss = 1 - y * f, sign = y;"]
    extent = f"self + 1 / (2 * {limit})" if rule.variant == 2 else "self"
    size = f"@P@_min({limit}, loss / extent)" if rule.variant == 1 else "loss / extent"
    return [
        *lines,
        f"const @P@_num extent = {extent};",
        f"if (loss > 0 && !(self < 0) && extent > 0) step.coefficient = sign * ({size});",
    ]


def _sgd(rule: Any, _: str, single: bool) -> list[str]:
    name, nu = type(rule.loss).__name__, getattr(rule.loss, "nu", None)
    rate = literal(rule.rate, single)
    now = rate if rule.schedule == "constant" else f"{rate} / sqrt@S@((@P@_num)t)"
    lines = [
        f"const @P@_num rate = {now};",
        f"const @P@_num push = rate * ({_PUSH[name]});",
        "step.coefficient = push;",
        f"step.shrink = 1 - rate * {literal(rule.reg, single)};",
    ]
    if rule.intercept:
        lines.append("step.intercept = push;")
    if nu is not None:
        share = literal(nu, single)
        moved = f"{share} - beyond" if name == "Hinge" else f"beyond - {share}"
        lines += [f"{{ const @P@_num beyond = {_BEYOND[name]} ? 1 : 0;", f"  step.width = w + rate * ({moved}); }}"]
        if name == "Huber":
            lines.append(f"step.width = @P@_max(step.width, {literal(1e-6, single)});")
    return lines


def _implicit(rule: Any, _: str, single: bool) -> list[str]:
    rate, reg, trade = literal(rule.rate, single), literal(rule.reg, single), literal(rule.C, single)
    now = rate if rule.schedule == "constant" else f"{rate} / sqrt@S@((@P@_num)t)"
    lines = [
        f"const @P@_num rate = {now}, keep = 1 / (1 + rate * {reg});",
        f"const @P@_num cap = keep * rate * {trade}, kept = keep * f;",
    ]
    name = type(rule.loss).__name__
    if name == "Squared":
        lines.append("if (self >= 0) step.coefficient = (y - kept) / (1 / cap + self);")
    elif name == "Hinge":
        lines.append("if (self > 0) step.coefficient = y * @P@_min(@P@_max((w - y * kept) / self, 0), cap);")
    else:
        lines.append("if (self >= 0) step.coefficient = y * @P@_root(y * kept, self, cap);")
    return [*lines, "step.shrink = keep;"]


def first_width(rule: object) -> float:
    """The width of a loss whose width stays as it is."""
    loss = getattr(rule, "loss", None)
    for name in ("margin", "epsilon", "sigma", "quantile"):
        if hasattr(loss, name):
            return float(getattr(loss, name))
    return 1.0


_OLDER = """
/* Whether slot a holds an older point than slot b. */
static inline int @P@_older(const @P@_state *state, int a, int b) {
    const uint32_t now = (uint32_t)state->seen;
    return (uint32_t)(now - state->stamp[a]) > (uint32_t)(now - state->stamp[b]);
}
"""

#: each sets `slot`: the place of the new point, -1 where it stays outside; `onto` and `share` where something is folded
_CHOOSE = {
    "DropOldest": """
static inline @P@_entry @P@_choose_slot(const @P@_state *state) {
    @P@_entry entry = {0, -1, 0};
    int i;
    for (i = 1; i < (int)state->size; ++i)
        if (@P@_older(state, i, entry.slot)) entry.slot = i;
    return entry;
}
""",
    "DropSmallest": """
static inline @P@_num @P@_magnitude(const @P@_num *coefs) {
    @P@_num largest = 0;
    int o;
    for (o = 0; o < @U@_OUTPUTS; ++o) largest = @P@_max(largest, @P@_abs(coefs[o]));
    return largest;
}
static inline @P@_entry @P@_choose_slot(const @P@_state *state, const @P@_num *coefs, @P@_num shrink) {
    const @P@_num scale = @P@_abs(state->scale);
    @P@_entry entry = {0, -1, 0};
    @P@_num least = scale * @P@_magnitude(state->coefs[0]);
    int i;
    for (i = 1; i < (int)state->size; ++i) {
        const @P@_num here = scale * @P@_magnitude(state->coefs[i]);
        if (here < least || (here == least && @P@_older(state, i, entry.slot))) entry.slot = i, least = here;
    }
    if (@P@_magnitude(coefs) < least * @P@_abs(shrink)) entry.slot = -1;
    return entry;
}
""",
    "Merge": """
static inline @P@_num @P@_inverse(@P@_num self) { return self > 0 ? 1 / self : 0; }
static inline void @P@_set_partner(@P@_state *state, int i, @P@_best best) {
    state->partner[i] = (uint16_t)(best.slot < 0 ? 0xFFFF : best.slot);
    state->likeness[i] = best.likeness, state->shares[i] = best.share, state->stale[i] = 0;
}
/* The stored point most like one with these kernel values, other than `but`; the oldest of equals. */
static inline @P@_best @P@_best_partner(const @P@_state *state, const @P@_num *values, int but) {
    @P@_best best = {-1, 0, 0};
    int i;
    for (i = 0; i < (int)state->size; ++i) {
        const @P@_num inverse = @P@_inverse(state->selves[i]), likeness = values[i] * values[i] * inverse;
        if (i == but || !(likeness > 0) || likeness < best.likeness) continue;
        if (best.slot >= 0 && likeness == best.likeness && !@P@_older(state, i, best.slot)) continue;
        best.slot = i, best.likeness = likeness, best.share = values[i] * inverse;
    }
    return best;
}
/* Folds the newcomer or the stored point whose leaving then changes the scores least. A point whose partner has left is
   paired again only where that could decide; `other` has room for its kernel values. */
static inline @P@_entry @P@_choose_slot(@P@_state *state, const @P@_num *coefs, @P@_num shrink, @P@_num self, @P@_best mine,
                                   @P@_num *other) {
    const @P@_num all = state->scale * shrink;
    @P@_entry entry = {-1, mine.slot, mine.share};
    @P@_num own = 0;
    int i, o;
    for (o = 0; o < @U@_OUTPUTS; ++o) own += coefs[o] * coefs[o];
    own *= @P@_max(self - mine.likeness, 0);
    for (;;) {
        @P@_num least = 0;
        int found = -1;
        for (i = 0; i < (int)state->size; ++i) {
            const @P@_num left = state->selves[i] - state->likeness[i];
            @P@_num cost = 0;
            for (o = 0; o < @U@_OUTPUTS; ++o) cost += state->coefs[i][o] * state->coefs[i][o];
            cost = cost * (all * all) * (left > 0 ? left : 0);
            if (found < 0 || cost < least || (cost == least && @P@_older(state, i, found))) found = i, least = cost;
        }
        if (own < least) return entry;
        if (!state->stale[found]) {
            entry.slot = found;
            entry.onto = state->partner[found] == 0xFFFF ? -1 : state->partner[found];
            entry.share = state->shares[found];
            return entry;
        }
        @P@_kernel_row(state, state->points[found], @NORM@, other);
        @P@_set_partner(state, found, @P@_best_partner(state, other, found));
    }
}
/* A point with these kernel values has gone into a slot; the partners of the others are looked over. */
static inline void @P@_update_partners(@P@_state *state, int slot, int replaced, const @P@_num *values, @P@_num self,
                                       @P@_best mine) {
    const @P@_num inverse = @P@_inverse(self);
    int i;
    for (i = 0; replaced && i < (int)state->size; ++i)
        if (state->partner[i] == slot) state->partner[i] = 0xFFFF, state->stale[i] = 1;
    state->selves[slot] = self;
    if (!replaced || mine.slot < 0 || mine.slot == slot) mine = @P@_best_partner(state, values, slot);
    @P@_set_partner(state, slot, mine);
    for (i = 0; i < (int)state->size; ++i) {
        const @P@_num likeness = values[i] * values[i] * inverse;
        if (i != slot && likeness > state->likeness[i]) {
            const @P@_best best = {slot, likeness, values[i] * inverse};
            @P@_set_partner(state, i, best);
        }
    }
}
""",
}

_TYPES = """
typedef struct {
    int slot, onto; /* -1: none */
    @P@_num share;
} @P@_entry;
"""
_BEST = """
typedef struct {
    int slot; /* -1: none is alike */
    @P@_num likeness, share;
} @P@_best;
"""


def budget(learning: Learning, norms: bool) -> str:
    """`choose`: what makes room for a new point once the store is full."""
    text = _TYPES + (_BEST if learning.budget == "Merge" else "") + _OLDER + _CHOOSE[learning.budget]
    return text.replace("@NORM@", "state->norms[found]" if norms else "0")
