// What may be chosen for a panel: algorithms, rules, budgets, kernels; what they do in a sentence, and how Python writes them.

import * as parts from "./gristmill.js";

// settings: {kernel, width, degree, size, C, rate, tolerance}
export const KERNELS = {
  Gaussian: { title: "Gaussian", make: (s) => parts.Gaussian(gamma(1 / (2 * s.width * s.width))) },
  Laplacian: { title: "Laplacian", make: (s) => parts.Laplacian(gamma(1 / s.width)) },
  Polynomial: { title: "Polynomial, normalised", make: (s) => parts.Normalized(parts.Polynomial(s.degree, 1, 1)) },
};
const gamma = (value) => Number(value.toPrecision(3));

export const RULES = {
  Perceptron: { title: "Perceptron", make: () => parts.Perceptron() },
  PassiveAggressive: { title: "Passive-aggressive", make: (s) => parts.PassiveAggressive(s.C, 1) },
  SGD: { title: "SGD on the hinge loss (NORMA)", make: (s) => parts.SGD({ loss: parts.Hinge(1), rate: s.rate, reg: 0.01 }) },
};
export const BUDGETS = {
  Unbounded: { title: "Keep everything", make: () => parts.Unbounded() },
  DropOldest: { title: "Drop the oldest", make: (s) => parts.DropOldest(s.size) },
  DropSmallest: { title: "Drop the smallest", make: (s) => parts.DropSmallest(s.size) },
  DropRandom: { title: "Drop at random", make: (s) => parts.DropRandom(s.size) },
  Forget: { title: "Forget (Forgetron)", make: (s) => parts.Forget(s.size) },
  Project: { title: "Project (Projectron)", make: (s) => parts.Project(s.tolerance, s.size) },
  Merge: { title: "Merge", make: (s) => parts.Merge(s.size) },
};

export const ALGORITHMS = {
  Perceptron: {
    rule: "Perceptron", budget: "Unbounded",
    says: "The Perceptron stores a point each time it is wrong, and forgets nothing: its memory grows, and old points argue against new ones.",
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
export function algorithmOf({ rule, budget }) {
  return Object.keys(ALGORITHMS).find((name) => ALGORITHMS[name].rule === rule && ALGORITHMS[name].budget === budget) ?? null;
}
export function sentenceOf(panel) {
  const name = algorithmOf(panel);
  return name ? ALGORITHMS[name].says : `${RULES[panel.rule].title} with the budget “${BUDGETS[panel.budget].title}”: a combination of your own.`;
}

export function composition(panel, settings) {
  return {
    kernel: KERNELS[settings.kernel].make(settings), rule: RULES[panel.rule].make(settings), budget: BUDGETS[panel.budget].make(settings),
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

// A program that runs the panels over the same events and prints what the page shows.
export function program(panels, settings, stream) {
  const made = panels.map((panel) => composition(panel, settings));
  const names = [...new Set(made.flatMap((one) => Object.values(one).flatMap(namesIn)))].sort();
  const models = made.map(({ kernel, rule, budget }) => `    KernelClassifier(${python(kernel)}, ${python(rule)}, ${python(budget)}),`);
  return `import numpy as np
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
