// Kernels, losses, rules and budgets as values: plain frozen objects with the names and fields of the Python classes,
// checked when they are made, and turned into the settings that the core reads.

const isReal = (v) => typeof v === "number" && Number.isFinite(v);
const range = (says, allows) => ({ says, allows });
const real = range("a finite number", isReal);
const positive = range("a number > 0", (v) => isReal(v) && v > 0);
const positiveOrInfinite = range("a number > 0 (Infinity allowed)", (v) => typeof v === "number" && v > 0);
const nonNegative = range("a number >= 0", (v) => isReal(v) && v >= 0);
const fraction = range("a number in (0, 1]", (v) => isReal(v) && v > 0 && v <= 1);
const openFraction = range("a number in (0, 1)", (v) => isReal(v) && v > 0 && v < 1);
const share = range("a number in [0, 1)", (v) => isReal(v) && v >= 0 && v < 1);
const unit = range("a number in [0, 1]", (v) => isReal(v) && v >= 0 && v <= 1);
const degree = range("a whole number from 1 to 10000", (v) => Number.isInteger(v) && v >= 1 && v <= 10000);
const count = range("a whole number >= 1", (v) => Number.isInteger(v) && v >= 1);
const size = range('a whole number >= 1, or bytes in words such as "1 MB"', (v) => (Number.isInteger(v) && v >= 1) || bytesIn(v) > 0);
const flag = range("true or false", (v) => typeof v === "boolean");
const optional = (r) => range(`${r.says}, or null`, (v) => v === null || r.allows(v));
const oneOf = (...choices) => range(`one of ${choices.join(", ")}`, (v) => choices.includes(v));
const kindOf = (kind) => range(`a ${kind}`, (v) => v !== null && typeof v === "object" && PARTS[v.type]?.kind === kind);

const UNITS = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
const bytesIn = (text) => {
  const found = typeof text === "string" && /^\s*(\d+(?:\.\d+)?) (\w+)\s*$/.exec(text);
  return found && found[2] in UNITS ? Math.trunc(Number(found[1]) * UNITS[found[2]]) : NaN;
};

// Every part: its kind, and its fields in the order of the Python class, each with a default (undefined: must be given) and a range.
const hinge = () => Hinge();
export const PARTS = {
  Linear: { kind: "kernel", fields: {} },
  Polynomial: { kind: "kernel", fields: { degree: [3, degree], gamma: [1, positive], coef0: [1, nonNegative] } },
  Gaussian: { kind: "kernel", fields: { gamma: [1, positive] } },
  Laplacian: { kind: "kernel", fields: { gamma: [1, positive] } },
  Exponential: { kind: "kernel", fields: { sigma: [1, positive] } },
  Vovk: { kind: "kernel", fields: { degree: [null, optional(degree)] } },
  Sigmoid: { kind: "kernel", fields: { gamma: [1, positive], coef0: [0, real] } },
  Manhattan: { kind: "kernel", fields: {} },
  SquaredEuclidean: { kind: "kernel", fields: {} },
  Normalized: { kind: "kernel", fields: { base: [undefined, kindOf("kernel")] } },
  Sum: { kind: "kernel", fields: { left: [undefined, kindOf("kernel")], right: [undefined, kindOf("kernel")] } },
  Product: { kind: "kernel", fields: { left: [undefined, kindOf("kernel")], right: [undefined, kindOf("kernel")] } },
  Multiple: { kind: "kernel", fields: { factor: [undefined, positive], base: [undefined, kindOf("kernel")] } },

  Hinge: { kind: "loss", width: "margin", fields: { margin: [1, nonNegative], nu: [null, optional(fraction)] } },
  Logistic: { kind: "loss", fields: {} },
  Squared: { kind: "loss", fields: {} },
  EpsilonInsensitive: { kind: "loss", width: "epsilon", fields: { epsilon: [0.1, nonNegative], nu: [null, optional(fraction)] } },
  Huber: { kind: "loss", width: "sigma", fields: { sigma: [1, positive], nu: [null, optional(fraction)] } },
  Pinball: { kind: "loss", width: "quantile", fields: { quantile: [0.5, openFraction] } },

  Perceptron: { kind: "rule", fields: {} },
  SGD: {
    kind: "rule",
    fields: {
      loss: [hinge, kindOf("loss")], rate: [0.1, positive], reg: [0, nonNegative],
      schedule: ["constant", oneOf("constant", "inv_sqrt")], intercept: [false, flag],
    },
  },
  PassiveAggressive: { kind: "rule", fields: { C: [1, positiveOrInfinite], variant: [1, oneOf(0, 1, 2)], epsilon: [0.1, nonNegative] } },
  FeasibleSet: { kind: "rule", fields: { epsilon: [null, optional(nonNegative)], radius: [null, optional(positive)] } },
  Implicit: {
    kind: "rule",
    fields: {
      loss: [hinge, kindOf("loss")], C: [1, positiveOrInfinite], rate: [1, positive], reg: [0, nonNegative],
      schedule: ["constant", oneOf("constant", "inv_sqrt")],
    },
  },
  Alma: { kind: "rule", fields: { alpha: [0.9, fraction], B: [null, optional(positive)], C: [null, optional(positive)] } },
  Romma: { kind: "rule", fields: { aggressive: [false, flag] } },
  MarginProjection: { kind: "rule", needs: ["Project"], fields: { squared: [false, flag] } },
  Adatron: {
    kind: "rule", binary: true, needs: ["Unbounded", "Project"],
    fields: { rate: [1, positive], C: [Infinity, positiveOrInfinite], passes: [1, count] },
  },
  StepSizeAdaptation: {
    kind: "rule",
    fields: {
      loss: [hinge, kindOf("loss")], rate: [0.1, positive], reg: [0, nonNegative], meta_rate: [0.1, nonNegative],
      decay: [0.95, unit], form: ["exponential", oneOf("exponential", "linear")],
    },
  },
  Density: { kind: "rule", fields: { decay: [0, share], nu: [0.01, openFraction], neighbours: [0, share] } },

  Unbounded: { kind: "budget", fields: {} },
  Window: { kind: "budget", fields: { steps: [null, optional(count)], growth: [null, optional(nonNegative)] } },
  DropOldest: { kind: "budget", fields: { size: [undefined, size] } },
  DropSmallest: { kind: "budget", fields: { size: [undefined, size] } },
  DropRandom: { kind: "budget", fields: { size: [undefined, size], uniform: [false, flag] } },
  Merge: { kind: "budget", fields: { size: [undefined, size] } },
  Forget: { kind: "budget", binary: true, rules: ["Perceptron"], fields: { size: [undefined, count], basic: [false, flag] } },
  Project: {
    kind: "budget",
    rules: ["Perceptron", "MarginProjection", "Alma", "SGD", "PassiveAggressive", "FeasibleSet", "Implicit"],
    fields: { tolerance: [undefined, nonNegative], size: [null, optional(count)] },
  },
};

// A part from its fields by name; throws where one is unknown, missing or out of range.
export function makePart(type, given = {}) {
  const part = PARTS[type];
  if (!part) throw new TypeError(`there is no part ${type} in the browser module`);
  const made = { type };
  for (const name of Object.keys(given))
    if (name !== "type" && !(name in part.fields)) throw new TypeError(`${type} has no ${name}`);
  for (const [name, [otherwise, allowed]] of Object.entries(part.fields)) {
    let value = given[name];
    if (value === undefined) value = typeof otherwise === "function" ? otherwise() : otherwise;
    if (value === undefined || !allowed.allows(value))
      throw new RangeError(`${type}: ${name} must be ${allowed.says}, got ${JSON.stringify(value)}`);
    made[name] = value;
  }
  return Object.freeze(made);
}

// Gaussian(0.5) and Gaussian({gamma: 0.5}) are the same.
const maker = (type) => (...given) => {
  const first = given[0], named = given.length === 1 && first !== null && typeof first === "object" && !("type" in first);
  if (named) return makePart(type, first);
  const names = Object.keys(PARTS[type].fields);
  if (given.length > names.length) throw new TypeError(`${type} has ${names.length} field(s), got ${given.length}`);
  return makePart(type, Object.fromEntries(given.map((value, at) => [names[at], value])));
};
export const [
  Linear, Polynomial, Gaussian, Laplacian, Exponential, Vovk, Sigmoid, Manhattan, SquaredEuclidean, Normalized, Sum, Product, Multiple,
  Hinge, Logistic, Squared, EpsilonInsensitive, Huber, Pinball,
  Perceptron, SGD, PassiveAggressive, FeasibleSet, Implicit, Alma, Romma, MarginProjection, Adatron, StepSizeAdaptation, Density,
  Unbounded, Window, DropOldest, DropSmallest, DropRandom, Merge, Forget, Project,
] = Object.keys(PARTS).map(maker);

// Refuses rules and budgets that have no meaning together, or for so many classes.
export function checkComposition(rule, budget, classes = 0) {
  const wants = PARTS[rule.type], holds = PARTS[budget.type];
  if (wants?.kind !== "rule") throw new TypeError(`rule must be a rule such as Perceptron(), got ${JSON.stringify(rule)}`);
  if (holds?.kind !== "budget") throw new TypeError(`budget must be a budget such as DropOldest(100), got ${JSON.stringify(budget)}`);
  if (holds.rules && !holds.rules.includes(rule.type))
    throw new RangeError(`${budget.type} works with ${holds.rules.join(", ")}, not with ${rule.type}`);
  if (wants.needs && !wants.needs.includes(budget.type))
    throw new RangeError(`${rule.type} works with ${wants.needs.join(", ")}, not with ${budget.type}`);
  if (rule.type === "Density" && budget.type === "DropSmallest")
    throw new RangeError("Density gives every event the same coefficient; use Merge, DropRandom or DropOldest");
  for (const part of [rule, budget])
    if (classes > 2 && PARTS[part.type].binary) throw new RangeError(`${part.type} is defined for two classes only, got ${classes}`);
}

// ---- settings for the core: a name and a value on each line -------------------------------------------------------

function kernelNodes(kernel, nodes) {
  const leaf = (op, n = 0, a = 0, b = 0) => nodes.push(`${op} -1 -1 ${n} ${a} ${b}`) - 1;
  const inner = (op, left, right = -1, a = 0) => nodes.push(`${op} ${left} ${right} 0 ${a} 0`) - 1;
  switch (kernel.type) {
    case "Linear": return leaf("linear");
    case "Polynomial": return leaf("polynomial", kernel.degree, kernel.gamma, kernel.coef0);
    case "Gaussian": return leaf("gaussian", 0, kernel.gamma);
    case "Laplacian": return leaf("laplacian", 0, kernel.gamma);
    case "Exponential": return leaf("exponential", 0, 1 / (kernel.sigma * kernel.sigma));
    case "Vovk": return leaf("vovk", kernel.degree ?? 0);
    case "Sigmoid": return leaf("sigmoid", 0, kernel.gamma, kernel.coef0);
    case "Manhattan": return leaf("manhattan");
    case "SquaredEuclidean": return leaf("squared_euclidean");
    case "Normalized": return inner("normalized", kernelNodes(kernel.base, nodes));
    case "Multiple": return inner("multiple", kernelNodes(kernel.base, nodes), -1, kernel.factor);
    case "Sum":
    case "Product": {
      const left = kernelNodes(kernel.left, nodes), right = kernelNodes(kernel.right, nodes);
      return inner(kernel.type.toLowerCase(), left, right);
    }
    default: throw new TypeError(`kernel must be a kernel such as Gaussian(1), got ${JSON.stringify(kernel)}`);
  }
}

export function settingsOf({ kernel, rule, budget, ...others }) {
  const nodes = [];
  kernelNodes(kernel, nodes);
  const settings = { rule: rule.type, ...rule, budget: budget.type, ...budget, ...others };
  if (rule.loss) {
    settings.loss = rule.loss.type;
    const width = PARTS[rule.loss.type].width;
    if (width) settings.width = rule.loss[width];
    if (rule.loss.nu != null) settings.nu = rule.loss.nu;
  }
  if (typeof settings.size === "string") Object.assign(settings, { bytes: bytesIn(settings.size), size: "4611686018427387904" });
  delete settings.type;
  const lines = Object.entries(settings).filter(([, value]) => value !== null && value !== undefined);
  return [...nodes.map((node) => `node ${node}`), ...lines.map(([name, value]) => `${name} ${value}`)].join("\n");
}
