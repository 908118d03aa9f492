// The streams: event t is a function of t alone, so that the Python code on the page gives the same stream.
// In place of random numbers: multiples of irrational numbers without their whole part, which fill the unit interval evenly.

import { DIGITS, LABELS, MIDDLE, PLACES, PLANE, REACH } from "./digits.js";

const STEPS = [0.6180339887498949, 0.7548776662466927, 0.5698402909980532, 0.8191725133961645, 0.6710436067037893];
export const uniform = (t, which) => ((t + 1) * STEPS[which]) % 1;
export const VIEW = { left: -2, right: 2, top: 1.5, bottom: -1.5 };
export const LONGEST = 8000; // events; then the stream stops

const turning = {
  title: "Turning crescents",
  changes: [[2000, "half a turn"], [4000, "a full turn"]],
  about: "Two interlocking crescents turn: after half a turn each lies where the other was.",
  event(t, noise) {
    const angle = Math.PI * uniform(t, 1), turn = (2 * Math.PI * t) / 4000;
    const label = uniform(t, 0) < 0.5 ? 0 : 1, side = label === 0 ? 1 : -1;
    const x = side * (Math.cos(angle) - 0.5) + noise * (uniform(t, 2) + uniform(t, 3) - 1);
    const y = side * (1.2 * Math.sin(angle) - 0.35) + noise * (uniform(t, 3) + uniform(t, 4) - 1);
    return { x: 0.85 * (Math.cos(turn) * x - Math.sin(turn) * y), y: 0.85 * (Math.sin(turn) * x + Math.cos(turn) * y), label };
  },
  python: (n, noise) => `t = np.arange(${n})
u = [(t + 1) * step % 1 for step in (${STEPS.join(", ")})]
y = np.where(u[0] < 0.5, 0, 1)
side, angle, turn = 1 - 2 * y, np.pi * u[1], 2 * np.pi * t / 4000
a = side * (np.cos(angle) - 0.5) + ${noise} * (u[2] + u[3] - 1)
b = side * (1.2 * np.sin(angle) - 0.35) + ${noise} * (u[3] + u[4] - 1)
X = 0.85 * np.column_stack([np.cos(turn) * a - np.sin(turn) * b, np.sin(turn) * a + np.cos(turn) * b])`,
};

const switching = {
  title: "Switching blobs",
  changes: Array.from({ length: LONGEST / 1000 - 1 }, (_, k) => [1000 * (k + 1), "switch"]),
  about: "Three groups; every 1,000 events each takes the class of its neighbour, and what was learned is wrong at once.",
  event(t, noise) {
    const blob = Math.floor(3 * uniform(t, 0)), angle = (2 * Math.PI * blob) / 3;
    return {
      x: Math.cos(angle) + 2 * noise * (uniform(t, 1) + uniform(t, 2) - 1),
      y: 0.9 * Math.sin(angle) + 2 * noise * (uniform(t, 3) + uniform(t, 4) - 1),
      label: (blob + Math.floor(t / 1000)) % 3,
    };
  },
  python: (n, noise) => `t = np.arange(${n})
u = [(t + 1) * step % 1 for step in (${STEPS.join(", ")})]
blob = np.floor(3 * u[0]).astype(int)
angle, y = 2 * np.pi * blob / 3, (blob + t // 1000) % 3
X = np.column_stack([np.cos(angle) + 2 * ${noise} * (u[1] + u[2] - 1), 0.9 * np.sin(angle) + 2 * ${noise} * (u[3] + u[4] - 1)])`,
};

// Indices of images by digit, in the order in which the digits enter.
const images = [];
const entered = DIGITS.map((digit) => {
  for (let i = 0; i < LABELS.length; i++) if (Number(LABELS[i]) === digit) images.push(i);
  return images.length;
});
const digits = {
  title: "Digits, new ones enter",
  changes: [[600, "3 enters"], [1200, "9 enters"]],
  about: "Handwritten digits in two dimensions that separate them: 1 and 7, from event 600 on 3, from 1,200 on 9. A new class may come at any event.",
  event(t) {
    const known = entered[Math.min(1 + Math.floor(t / 600), 3)], image = images[Math.floor(uniform(t, 0) * known)];
    const [a, b] = PLACES[image];
    return { x: (a - MIDDLE[0]) / REACH[0], y: (b - MIDDLE[1]) / REACH[1], label: DIGITS.indexOf(Number(LABELS[image])), image };
  },
  python: (n) => `from sklearn.datasets import load_digits

pixels, digit = load_digits(return_X_y=True)
order = np.concatenate([np.flatnonzero(digit == d) for d in (${DIGITS.join(", ")})])  # as they enter the stream
known = np.cumsum([(digit == d).sum() for d in (${DIGITS.join(", ")})])
t = np.arange(${n})
event = order[((t + 1) * ${STEPS[0]} % 1 * known[np.minimum(1 + t // 600, 3)]).astype(int)]
plane = np.array([
    ${PLANE.map((row) => `[${row.join(", ")}]`).join(",\n    ")},
])
X = (pixels[event] @ plane.T - [${MIDDLE.join(", ")}]) / [${REACH.join(", ")}]
y = np.array([${[...DIGITS].sort().map((d) => DIGITS.indexOf(d)).join(", ")}])[np.searchsorted([${[...DIGITS].sort().join(", ")}], digit[event])]`,
};

export const STREAMS = { turning, switching, digits };

// What was drawn by hand: strokes, each followed by repetitions of all points so far.
export class Drawing {
  points = [];
  turns = []; // [points of a stroke, repetitions after it]
  #strokeOpen = false;

  add(x, y, label) {
    if (!this.#strokeOpen || this.turns.length === 0 || this.turns.at(-1)[1] > 0) this.turns.push([0, 0]);
    this.#strokeOpen = true;
    this.turns.at(-1)[0]++;
    const event = { x, y, label };
    this.points.push(event);
    return event;
  }
  // One of the points again; t: how many events came before.
  again(t) {
    this.turns.at(-1)[1]++;
    return this.points[Math.floor(uniform(t, 0) * this.points.length)];
  }
  python() {
    return `points = np.array([
    ${this.points.map(({ x, y, label }) => `[${x}, ${y}, ${label}]`).join(", ").replace(/((?:\[[^\]]*\], ){4})/g, "$1\n    ").trimEnd()}
])
turns = [${this.turns.map((turn) => `(${turn.join(", ")})`).join(", ")}]  # points drawn, then so many repetitions of all
order, n = [], 0
for drawn, repeated in turns:
    order += range(n, n + drawn)
    n += drawn
    order += [int((t + 1) * ${STEPS[0]} % 1 * n) for t in range(len(order), len(order) + repeated)]
X, y = points[order, :2], points[order, 2].astype(int)`;
  }
}
