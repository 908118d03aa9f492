// What may be chosen for a panel: algorithms, rules, budgets, kernels; what they do in a sentence, and how Python writes them.

import * as parts from "./gristmill.js";

// settings: {kernel, width, degree, C, rate, tolerance}; a budget also reads size, which each learner has for itself.
export const KERNELS = {
  Gaussian: { title: "Gaussian", make: (s) => parts.Gaussian(gamma(1 / (2 * s.width * s.width))) },
  Laplacian: { title: "Laplacian", make: (s) => parts.Laplacian(gamma(1 / s.width)) },
  Polynomial: { title: "Polynomial, normalised", make: (s) => parts.Normalized(parts.Polynomial(s.degree, 1, 1)) },
};
const gamma = (value) => Number(value.toPrecision(3));

export const RULES = {
  Perceptron: { title: "Perceptron", short: "Perceptron", says: "Stores an event when it is wrong about it.", make: () => parts.Perceptron() },
  PassiveAggressive: { title: "Passive-aggressive", short: "PA", says: "Takes the smallest step that restores a margin of 1, at most C.", make: (s) => parts.PassiveAggressive(s.C, 1) },
  SGD: { title: "SGD, hinge loss (NORMA)", short: "SGD", says: "Takes a gradient step where the margin is below 1; all weights decay.", make: (s) => parts.SGD({ loss: parts.Hinge(1), rate: s.rate, reg: 0.01 }) },
};
export const BUDGETS = {
  Unbounded: { title: "Keep everything", short: "all", says: "No point ever leaves.", make: () => parts.Unbounded() },
  DropOldest: { title: "Drop the oldest", short: "oldest", says: "When the budget is full, the oldest point leaves.", make: (s) => parts.DropOldest(s.size) },
  DropSmallest: { title: "Drop the smallest", short: "smallest", says: "When the budget is full, the point with the smallest weight leaves.", make: (s) => parts.DropSmallest(s.size) },
  DropRandom: { title: "Drop at random", short: "random", says: "When the budget is full, a random point leaves.", make: (s) => parts.DropRandom(s.size) },
  Forget: { title: "Forget (Forgetron)", short: "Forget", says: "Weights shrink, so that the oldest point weighs little when it leaves.", make: (s) => parts.Forget(s.size) },
  Project: { title: "Project (Projectron)", short: "Project", says: "An event that stored points can stand for is not stored but added to them.", make: (s) => parts.Project(s.tolerance, s.size) },
  Merge: { title: "Merge", short: "Merge", says: "When the budget is full, the least important point is merged into the one most similar to it.", make: (s) => parts.Merge(s.size) },
};

export const ALGORITHMS = {
  Perceptron: {
    rule: "Perceptron", budget: "Unbounded",
    says: "The Perceptron stores a point each time it is wrong, and forgets nothing: its memory grows, and after a change old points outweigh new ones.",
  },
  "Passive-aggressive": {
    rule: "PassiveAggressive", budget: "DropOldest",
    says: "Passive-aggressive does nothing when the margin is 1 or more; otherwise it takes the smallest step that would restore it, at most C.",
  },
  Projectron: {
    rule: "Perceptron", budget: "Project",
    says: "The Projectron writes a new point as a combination of stored ones where that is accurate enough, and stores it only where it is not.",
  },
  Forgetron: {
    rule: "Perceptron", budget: "Forget",
    says: "The Forgetron shrinks all weights after a mistake, so that the oldest point weighs little by the time it is dropped. Two classes only.",
  },
  NORMA: {
    rule: "SGD", budget: "DropOldest",
    says: "NORMA takes a gradient step at each event whose margin is below 1 and lets all weights decay, so that old points fade and can be dropped.",
  },
  Merge: {
    rule: "PassiveAggressive", budget: "Merge",
    says: "Merge removes the least important point and adds its weight to the stored point most similar to it, so that little of what was learned is lost.",
  },
};
// What is set side by side. Each panel is of a rule, a budget and its size.
const aggressive = (budget, size) => ({ rule: "PassiveAggressive", budget, size });
export const COMPARISONS = {
  algorithms: { title: "Three algorithms", panels: ["Perceptron", "Forgetron", "Merge"].map((name) => ({ ...ALGORITHMS[name], size: 40 })) },
  more: { title: "Three more algorithms", panels: ["Passive-aggressive", "Projectron", "NORMA"].map((name) => ({ ...ALGORITHMS[name], size: 40 })) },
  sizes: { title: "10, 40 and 160 points", panels: [10, 40, 160].map((size) => aggressive("Merge", size)) },
  budgets: { title: "Which point to drop", panels: ["DropOldest", "DropSmallest", "DropRandom", "Merge"].map((budget) => aggressive(budget, 25)) },
};
export function algorithmOf({ rule, budget }) {
  return Object.keys(ALGORITHMS).find((name) => ALGORITHMS[name].rule === rule && ALGORITHMS[name].budget === budget) ?? null;
}
export function sentenceOf(panel) {
  const name = algorithmOf(panel);
  return name ? ALGORITHMS[name].says : `${RULES[panel.rule].says} ${BUDGETS[panel.budget].says}`;
}
// A combination without a name of its own, and a short name for legends.
export const ownName = ({ rule, budget }) => `${RULES[rule].short}, ${BUDGETS[budget].short}`;
export function nameOf(panel) {
  const name = algorithmOf(panel)?.replace("Passive-aggressive", "PA") ?? ownName(panel);
  return panel.budget === "Unbounded" ? name : `${name} ${panel.size}`;
}

export function composition(panel, settings) {
  return {
    kernel: KERNELS[settings.kernel].make(settings), rule: RULES[panel.rule].make(settings), budget: BUDGETS[panel.budget].make({ ...settings, size: panel.size }),
  };
}

// ---- as Python ----------------------------------------------------------------------------------------------------

const number = (value) => (Number.isInteger(value) ? `${value}.0` : String(value));
function python(part) {
  switch (part.type) {
    case "Gaussian": case "Laplacian": return `${part.type}(gamma=${number(part.gamma)})`;
    case "Polynomial": return `Polynomial(degree=${part.degree}, gamma=1.0, coef0=1.0)`;
    case "Normalized": return `Normalized(${python(part.base)})`;
    case "PassiveAggressive": return `PassiveAggressive(C=${number(part.C)})`;
    case "SGD": return `SGD(Hinge(), rate=${number(part.rate)}, reg=${number(part.reg)})`;
    case "Project": return `Project(tolerance=${number(part.tolerance)}, size=${part.size})`;
    case "DropRandom": return `DropRandom(${part.size})`;
    default: return part.size === undefined ? `${part.type}()` : `${part.type}(${part.size})`;
  }
}
function namesIn(part) {
  return [part.type, ...["base", "loss"].filter((field) => part[field]).flatMap((field) => namesIn(part[field]))];
}

// A program that runs the panels over the same events and prints what the page shows. A browser has no fused multiply-add: where a
// point lies on a margin to the last bit (points that are drawn come again and again), it is stored here and not there.
export function program(panels, settings, stream) {
  const made = panels.map((panel) => composition(panel, settings));
  const names = [...new Set(made.flatMap((one) => Object.values(one).flatMap(namesIn)))].sort();
  const models = made.map(({ kernel, rule, budget }) => `    KernelClassifier(${python(kernel)}, ${python(rule)}, ${python(budget)}),`);
  return `# With GRISTMILL_ISA=baseline, Python computes to the last bit what the browser does.
import numpy as np
from gristmill import ${["KernelClassifier", ...names].sort().join(", ")}

${stream}

models = [
${models.join("\n")}
]
for model in models:
    wrong = 0
    for x, label in zip(X, y.tolist()):
        wrong += model.predict_one(x) != label  # each event is predicted first, then learned
        model.learn_one(x, label)
    print(f"{model.rule}, {model.budget}: {wrong} of {len(y)} wrong, {model.n_support_} points")
`;
}
