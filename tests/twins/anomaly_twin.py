"""The anomaly detector of `core/novelty`, naively: every distance, quantile and tree written down as it is defined."""

from __future__ import annotations

import numpy as np

MASK = 2**64 - 1


class Random:
    """splitmix64 of a counter, as `base/random.hpp`."""

    def __init__(self, seed):
        self.seed, self.counter = seed, 0

    def below(self, n):
        while True:
            self.counter += 1
            z = (self.seed + 0x9E3779B97F4A7C15 * self.counter) & MASK
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            z ^= z >> 31
            if z < MASK - MASK % n:
                return z % n


def soft(u):
    return np.where(np.abs(u) <= 8, u, np.copysign(8 + np.log1p(np.maximum(np.abs(u) - 8, 0)), u))


def hard(z):
    return np.where(np.abs(z) <= 8, z, np.copysign(8 + np.expm1(np.maximum(np.abs(z) - 8, 0)), z))


def measured(values):
    """Median and spread of a column; a spread of 0 for one value only."""
    ranked, n = np.sort(values), len(values)
    out = int(0.005 * (n - 1))
    low, middle, high = ranked[out], ranked[(n - 1) // 2], ranked[n - 1 - out]
    spread = max(np.clip(values, low, high).std(), (high - low) / 3)
    return middle, spread if spread > 0 else (ranked[-1] - ranked[0]) / 6


class Alarm:
    """Levels of scores among the last thousand, with the level at which an alarm begins moved by alarms too many."""

    def __init__(self, rate):
        self.rate, self.scores, self.surplus = rate, [], 0.0

    def shown(self, score):
        past, level, reach = np.sort(self.scores[-1000:]), np.log(self.rate), min(-np.log(self.rate), 3.0)
        found, n = 0.0, len(past)
        if n >= 2:
            place = np.clip((n + 1) * 0.05, 1, n)
            end = np.interp(place, np.arange(1, n + 1), past)
            below = past[past < end]
            if score < end:
                found = np.log(0.05) + (score - end) / (np.mean(end - below) if len(below) else 1.0)
            elif score >= past[-1]:
                found = np.log(1 - np.exp(past[-1] - score) / (n + 1))
            else:
                i = np.searchsorted(past, score, side="right")
                found = np.log((i + (score - past[i - 1]) / (past[i] - past[i - 1])) / (n + 1))
        if abs(found - level) < reach:
            found = level + np.interp(found - level, [-reach, -0.2 * self.surplus, reach], [-reach, 0.0, reach])
        return found - (level if n >= 50 else -1e6)

    def learn(self, score):
        found, most = self.shown(score), min(-np.log(self.rate), 3.0) / 2 / 0.2
        if len(self.scores) >= 50:
            self.surplus = np.clip(self.surplus + (found < 0) - self.rate, -most, most)
        self.scores.append(score)
        return found


class Tree:
    """Random splits of at most 128 stored events, at most 7 deep; a path ends with what n events would still need."""

    lengths = np.concatenate([[0, 0], [2 * (1 / np.arange(1, n)).sum() - 2 * (n - 1) / n for n in range(2, 129)]])

    def __init__(self, codes, random):
        slots, n = [], min(128, len(codes))
        for i in range(n):
            top = len(codes) - n + i
            drawn = top if n == len(codes) else random.below(top + 1)
            slots.append(top if drawn in slots else drawn)
        self.root = self.grown(codes[slots], 0, random)

    def grown(self, codes, depth, random):
        path = int(4096 * self.lengths[len(codes)]) + 4096 * depth
        for _ in range(16 if depth < 7 and len(codes) > 1 else 0):
            column = random.below(codes.shape[1])
            low, high = int(codes[:, column].min()), int(codes[:, column].max())
            if low < high:
                split = low + random.below(high - low)
                left = codes[:, column] <= split
                return [
                    column,
                    split,
                    self.grown(codes[left], depth + 1, random),
                    self.grown(codes[~left], depth + 1, random),
                ]
        return path

    def path(self, codes):
        node = self.root
        while isinstance(node, list):
            node = node[3 if codes[node[0]] > node[1] else 2]
        return node

    def recode(self, column, moved, node=None):
        node = self.root if node is None else node
        if isinstance(node, list):
            if node[0] == column:
                node[1] = int(moved(node[1]))
            self.recode(column, moved, node[2])
            self.recode(column, moved, node[3])


class Detector:
    """One event at a time: `learn` returns its score before it is learned."""

    def __init__(self, rate, seed, events, first, trees, window, as_bytes):
        self.events, self.first, self.window, self.often = events, first, window, 4 if as_bytes else 2
        self.n_trees, self.random, self.alarm = trees, Random(seed), Alarm(rate)
        self.step, self.limit = (2.0**-4, 127) if as_bytes else (2.0**-16, 2**21 - 1)
        self.seen, self.rows, self.views, self.thresholds, self.late, self.next = 0, [], [], [], 0.0, 0

    def scaled(self, x):
        first = np.sign(x - self.centre) * 6.0
        return np.where(self.unit > 0, soft((x - self.centre) * self.unit), first)

    def rounded(self, z):
        return np.clip(np.floor(z / self.step + 0.5), -self.limit, self.limit).astype(np.int64)

    def nearest(self, code, without=None):
        distances = np.abs(self.codes - code).sum(axis=1)
        order = [slot for slot in np.argsort(distances, kind="stable") if slot != without][:20]
        return distances[order] * self.step, order

    def view(self, code, beyond, without=None):
        near, order = self.nearest(code, without)
        paths = sum(tree.path(code) for tree in self.trees) / (len(self.trees) * int(4096 * Tree.lengths[128]))
        usual = np.mean([self.usual[slot] for slot in order])
        return [
            -np.log(near[:10].mean() + beyond + 1e-9),
            np.log((usual + 1e-9) / (near.mean() + beyond + 1e-9)),
            paths,
        ]

    def mixed(self, view):
        units = (np.array(view) - self.middle) / self.spread
        return -np.log(np.sum([1, 1, 0.35] * np.exp(-1.5 * (units - units.min()))) / 2.35) / 1.5 + units.min()

    def learn(self, x):
        if self.seen < self.first:
            shown = self.alarm.shown(0.0)
            self.rows.append(x)
            self.seen += 1
            if self.seen == self.first:
                self.begin(np.array(self.rows))
            return shown
        z = self.scaled(x)
        code, beyond = self.rounded(z), np.maximum(np.abs(z) - self.limit * self.step, 0).sum()
        view = self.view(code, beyond)
        shown = self.alarm.learn(self.mixed(view))
        self.views.append(view)
        self.late += ((view[0] < self.thresholds[-21:][0]) - self.late) / 600
        if self.late > 0.25:
            self.admitted = min(self.admitted, self.events + self.events // 5)
        if self.late > 0.25 or view[0] >= self.thresholds[-1]:
            self.admit(x, code, self.nearest(code)[0].mean() + beyond)
        self.seen += 1
        self.renew()
        return shown

    def admit(self, x, code, usual):
        self.admitted = min(self.admitted + 1, 5 * self.events)
        slot = len(self.codes) if len(self.codes) < self.events else self.random.below(self.admitted)
        if slot >= self.events:
            return
        new = (self.unit == 0) & (x != self.centre)
        self.unit = np.where(new, 6.0 / np.where(new, np.abs(x - self.centre), 1.0), self.unit)
        if slot == len(self.codes):
            self.codes, self.usual = np.vstack([self.codes, code]), [*self.usual, usual]
        self.codes[slot], self.usual[slot] = code, usual

    def begin(self, rows):
        self.centre, spread = np.array([measured(column) for column in rows.T]).T
        self.unit = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
        self.codes = np.array([self.rounded(self.scaled(x)) for x in rows])
        self.admitted = len(rows)
        self.usual = [self.nearest(code, slot)[0].mean() for slot, code in enumerate(self.codes)]
        self.trees = [Tree(self.codes, self.random) for _ in range(self.n_trees)]
        self.views = [self.view(code, 0.0, slot) for slot, code in enumerate(self.codes)]
        self.measure_views()
        for view in self.views:
            self.alarm.learn(self.mixed(view))

    def renew(self):
        doubled = self.seen in (100, 200, 400, 800)
        if doubled or self.seen % 500 == 0:
            self.measure_columns()
        if doubled:
            self.usual = [self.nearest(code, slot)[0].mean() for slot, code in enumerate(self.codes)]
            self.trees = self.trees[self.n_trees :] + [Tree(self.codes, self.random) for _ in range(self.n_trees)]
        if self.seen % self.often == 0:
            self.usual[self.next] = self.nearest(self.codes[self.next], self.next)[0].mean()
            self.next = (self.next + 1) % len(self.codes)
        if self.seen % 50 == 0:
            few = max(self.n_trees // 16, 1)
            self.trees = self.trees[few:] + [Tree(self.codes, self.random) for _ in range(few)]
            self.measure_views()

    def measure_views(self):
        last = np.sort(np.array(self.views[-self.window :]), axis=0)
        self.middle, tenth = last[len(last) // 2], last[len(last) // 10]
        self.spread = np.maximum(self.middle - tenth, [0.01, 0.01, 0.1])
        self.thresholds.append(tenth[0])

    def measure_columns(self):
        for c in np.flatnonzero(self.unit > 0):
            middle, spread = measured(hard(self.codes[:, c] * self.step))
            if spread > 0 and abs(middle) <= 0.02 and abs(spread - 1) <= 0.02:
                continue
            self.centre[c] += middle / self.unit[c]
            self.unit[c] = self.unit[c] / spread if spread > 0 else 0.0
            scale = spread if spread > 0 else 1.0

            def moved(code, middle=middle, scale=scale):
                return self.rounded(soft((hard(code * self.step) - middle) / scale))

            self.codes[:, c] = moved(self.codes[:, c])
            for tree in self.trees:
                tree.recode(c, moved)
