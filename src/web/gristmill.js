// gristmill in a browser, or in any JavaScript with WebAssembly: the C++ core of the Python package, and its model files.
//
//     import { load, Gaussian, Merge, PassiveAggressive } from "./gristmill.js";
//     const gristmill = await load();
//     const model = gristmill.classifier({ kernel: Gaussian(0.5), rule: PassiveAggressive(), budget: Merge(100) });
//     model.learnOne([0.2, 1.5], "left");
//     model.predictOne([0.1, 1.4]);
//     const same = gristmill.open(model.save());      // bytes that gristmill.load of Python reads, and the other way round
//
// Rows are arrays of arrays of numbers, or {data: Float64Array, width}. A bad row is refused with its place and changes nothing.

import { Gaussian, Hinge, Laplacian, Merge, PARTS, PassiveAggressive, SGD, checkComposition, makePart, settingsOf } from "./parts.js";
import { FORMATS, ModelFileError, plain, readFile, writeFile } from "./modelfile.js";

export * from "./parts.js";
export { ModelFileError };

// source: where gristmill.wasm is (a URL), or its bytes. Nothing else is ever fetched.
export async function load(source = new URL("gristmill.wasm", import.meta.url)) {
  const world = {
    env: { emscripten_notify_memory_growth() {}, __call_sighandler() {} },
    wasi_snapshot_preview1: {
      clock_time_get() { return 0; },
      proc_exit(code) { throw new Error(`the core stopped with code ${code}`); },
    },
  };
  const bytes = source instanceof URL || typeof source === "string" ? await (await fetch(source)).arrayBuffer() : source;
  const { instance } = await WebAssembly.instantiate(bytes, world);
  instance.exports._initialize?.();
  return new Gristmill(instance.exports);
}

export class Gristmill {
  #core;
  constructor(core) { this.#core = new Core(core); }
  get version() { return this.#core.text(this.#core.call.gm_version()); }

  classifier(parts = {}) { return new Model(this.#core, "KernelClassifier", parts); }
  regressor(parts = {}) { return new Model(this.#core, "KernelRegressor", parts); }
  novelty(parts = {}) { return new Model(this.#core, "KernelNovelty", parts); }

  // A model from the bytes of a file that Python or `save` wrote. Throws ModelFileError where they are damaged, or hold
  // something else than a kernel learner over dense rows.
  open(bytes) {
    const { metadata, arrays } = readFile(bytes, (data) => this.#core.digest(data));
    return Model.restored(this.#core, metadata, arrays);
  }
}

// ---- the WebAssembly instance: memory in and out ------------------------------------------------------------------

class Core {
  constructor(call) {
    this.call = call;
    this.finished = new FinalizationRegistry((model) => call.gm_delete(model));
  }
  fail() { throw new RangeError(this.text(this.call.gm_error())); }
  text(at) {
    const bytes = new Uint8Array(this.call.memory.buffer, at);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
  bytes(at, count) { return new Uint8Array(this.call.memory.buffer, at, count).slice(); }
  // The numbers that the last call gave; a view, which lasts until the next call.
  numbers() { return new Float64Array(this.call.memory.buffer, this.call.gm_numbers(), this.call.gm_count()); }
  // Runs f with the places of copies of typed arrays (null: no place).
  with(arrays, f) {
    const places = [];
    try {
      for (const array of arrays) {
        const at = array === null ? 0 : this.call.gm_alloc(Math.max(array.byteLength, 8));
        places.push(at);
        if (array !== null) new Uint8Array(this.call.memory.buffer, at, array.byteLength).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
      }
      return f(...places);
    } finally {
      for (const at of places) if (at) this.call.gm_free(at);
    }
  }
  withText(text, f) { return this.with([new TextEncoder().encode(`${text}\0`)], f); }
  digest(data) {
    return this.with([data, new Uint8Array(16)], (at, to) => {
      this.call.gm_digest(at, data.length, to);
      return Array.from(this.bytes(to, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
    });
  }
}

const FIELD_TYPES = [["F64", 8], ["I64", 8], ["U64", 8], ["U8", 1]];
const TASKS = { KernelClassifier: "classification", KernelRegressor: "regression", KernelNovelty: "novelty" };
const PARAMETERS = ["kernel", "rule", "budget", "average", "seed", "classWeight"];

// Defaults as in Python, for columns of about unit spread.
function defaults(estimator, columns) {
  if (estimator === "KernelRegressor") return { kernel: Laplacian(1 / columns), rule: PassiveAggressive(1, 2, 0.01) };
  if (estimator === "KernelNovelty") return { kernel: Gaussian(20 / columns), rule: SGD({ loss: Hinge(0, 0.1), rate: 0.2, reg: 0.01 }) };
  return { kernel: Laplacian(3 / columns), rule: PassiveAggressive() };
}

// ---- a model ------------------------------------------------------------------------------------------------------

export class Model {
  #core;
  #at = 0; // the learner in the core's memory; 0 before the first event
  #estimator;
  #parts;
  #labels = []; // in the order in which they came
  #codes = new Map();
  #metadata = null; // of the file it came from
  #single = false;
  #targets = 1;

  constructor(core, estimator, parts) {
    for (const name of Object.keys(parts)) if (!PARAMETERS.includes(name)) throw new TypeError(`${estimator} has no ${name}; it has ${PARAMETERS.join(", ")}`);
    this.#core = core;
    this.#estimator = estimator;
    this.#parts = { average: false, seed: 0, classWeight: null, ...parts };
    if (parts.rule && parts.budget) checkComposition(parts.rule, parts.budget);
  }

  static restored(core, metadata, arrays) {
    const refuse = (why) => { throw new ModelFileError(`the browser module cannot open this model: ${why}`); };
    const estimator = metadata.class;
    if (!(estimator in TASKS)) refuse(`it is a ${estimator}, and it reads ${Object.keys(TASKS).join(", ")}`);
    if (!arrays.points) refuse("its points are sparse or objects, and it reads dense rows of numbers");
    const fitted = plain(metadata.fitted), weights = plain(metadata.parameters.class_weight ?? null);
    let made;
    try {
      made = Object.fromEntries(["kernel", "rule", "budget"].map((name) => [name, partFrom(fitted[name])]));
    } catch (error) {
      refuse(error.message);
    }
    const classWeight = weights?.type === "dict" ? new Map(weights.items) : weights;
    const model = new Model(core, estimator, { ...made, average: fitted.average, classWeight });
    model.#metadata = metadata;
    model.#single = arrays.points.dtype === "F32";
    model.#labels = (fitted.labels ?? []).map((label, at) => ({ label, text: metadata.fitted.labels[at] }));
    model.#codes = new Map(model.#labels.map(({ label }, at) => [label, at]));
    for (const [name, { dtype, shape, bytes }] of Object.entries(arrays)) {
      if (name === "points") continue;
      const type = FIELD_TYPES.findIndex(([known]) => known === dtype);
      if (type < 0) refuse(`its field ${name} has the type ${dtype}`);
      const count = shape.reduce((a, b) => a * b, 1);
      core.withText(name, (label) => core.with([bytes], (at) => core.call.gm_put(label, type, at, count)));
    }
    const [rows, width] = arrays.points.shape;
    core.with([arrays.points.bytes], (at) => core.call.gm_put_points(at, model.#single ? 1 : 0, rows, width));
    model.#begin(width, true);
    if (estimator === "KernelRegressor") model.#targets = core.call.gm_outputs(model.#at);
    if (model.#labels.length !== core.call.gm_classes(model.#at)) refuse("its classes do not fit its labels");
    return model;
  }

  #begin(width, loads = false) {
    const { average, seed, classWeight, ...given } = this.#parts;
    const chosen = { ...defaults(this.#estimator, width), budget: Merge(1000), ...given };
    checkComposition(chosen.rule, chosen.budget, this.#labels.length);
    this.#parts = { ...this.#parts, ...chosen };
    const settings = settingsOf({
      ...chosen, task: TASKS[this.#estimator], columns: width, single: this.#single, average, seed,
      balanced: classWeight === "balanced", targets: loads ? 1 : this.#targets,
    });
    this.#at = this.#core.withText(settings, (text) => this.#core.call.gm_new(text, loads ? 1 : 0)) || this.#core.fail();
    this.#core.finished.register(this, this.#at, this);
  }
  #started() {
    if (!this.#at) throw new Error(`this ${this.#estimator} has learned nothing yet: call learn or learnOne first`);
    return this.#at;
  }

  // ---- learning

  // One pass over rows and labels, in order. weights: numbers >= 0, or nothing. Any cut of a stream gives the same model.
  learn(X, y = null, weights = null) {
    this.#learn(X, y, weights, false);
    return this;
  }
  learnOne(x, y = null) { this.learn([x], y === null ? null : [y]); }
  // The same, and the score of each event before it was learned: as `decision` gives it.
  prequential(X, y = null, weights = null) { return this.#learn(X, y, weights, true); }

  #learn(X, y, weights, want) {
    const rows = rowsOf(X, this.#at ? this.width : undefined);
    if (!this.#at && this.#estimator === "KernelRegressor" && Array.isArray(y?.[0])) this.#targets = y[0].length;
    const found = this.#numbers(y, rows.count);
    const { rule, budget } = this.#parts;
    if (rule && budget) checkComposition(rule, budget, found.labels.length);
    let each = weights === null ? null : Float64Array.from(weights);
    if (each && (each.length !== rows.count || each.some((w) => !(w >= 0 && Number.isFinite(w)))))
      throw new RangeError(`weights must be ${rows.count} numbers >= 0`);
    if (this.#parts.classWeight instanceof Map)
      each = Float64Array.from(found.numbers, (code, at) => (each ? each[at] : 1) * (this.#parts.classWeight.get(found.labels[code].label) ?? 1));
    const fresh = !this.#at;
    if (fresh) this.#begin(rows.width);
    const { call } = this.#core;
    const fine = this.#core.with([rows.data, found.numbers, each], (data, numbers, weigh) =>
      call.gm_learn(this.#at, data, rows.count, numbers, found.numbers?.length ?? 0, weigh, 0, want ? 1 : 0));
    if (!fine) {
      if (fresh) this.free();
      this.#core.fail();
    }
    this.#labels = found.labels;
    this.#codes = found.codes;
    return want ? this.#shown(this.#core.numbers()) : undefined;
  }

  // Labels as the core takes them: class numbers in the order of arrival, targets, or nothing.
  #numbers(y, count) {
    if (this.#estimator === "KernelNovelty") return { numbers: null, labels: this.#labels, codes: this.#codes };
    if (y === null || y.length !== count) throw new RangeError(`${this.#estimator} needs one label for each of ${count} rows, got ${y?.length ?? "none"}`);
    if (this.#estimator === "KernelRegressor") {
      const numbers = Float64Array.from(this.#targets > 1 ? y.flat() : y);
      const bad = numbers.findIndex((value) => !Number.isFinite(value));
      if (bad >= 0 || numbers.length !== count * this.#targets) throw new RangeError(`row ${bad}: y must be ${this.#targets} finite number(s) a row, got ${y[bad]}`);
      return { numbers, labels: this.#labels, codes: this.#codes };
    }
    const labels = [...this.#labels], codes = new Map(this.#codes), numbers = new Float64Array(count);
    for (let row = 0; row < count; row++) {
      const label = y[row], first = labels[0]?.label;
      const plainLabel = typeof label === "string" || Number.isInteger(label);
      if (!plainLabel || (first !== undefined && typeof first !== typeof label))
        throw new TypeError(`row ${row}: labels are all whole numbers or all strings, got ${JSON.stringify(label)}`);
      if (!codes.has(label)) codes.set(label, labels.push({ label, text: label }) - 1);
      numbers[row] = codes.get(label);
    }
    return { numbers, labels, codes };
  }

  // ---- predicting

  // The classes met so far, sorted.
  get classes() { return this.#order().map((code) => this.#labels[code].label); }
  #order() {
    const known = this.#at ? this.#core.call.gm_classes(this.#at) : 0;
    const order = Array.from({ length: known }, (_, code) => code);
    const of = (code) => this.#labels[code].label;
    return order.sort((a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0));
  }
  // Scores of the core, one row an event, in the order of `classes`; a flat array where there is one number an event.
  #shown(scores) {
    const outputs = this.#core.call.gm_outputs(this.#at);
    if (outputs === 1) {
      const sign = this.#order()[0] === 1 ? -1 : 1;
      return Float64Array.from(scores, (score) => sign * score);
    }
    const order = this.#estimator === "KernelClassifier" ? this.#order() : Array.from({ length: outputs }, (_, o) => o);
    return Array.from({ length: scores.length / outputs }, (_, row) => Float64Array.from(order, (o) => scores[row * outputs + o]));
  }
  #scores(X) {
    const at = this.#started(), rows = rowsOf(X, this.width);
    if (!this.#core.with([rows.data], (data) => this.#core.call.gm_score(at, data, rows.count))) this.#core.fail();
    return this.#core.numbers();
  }
  // One number an event for two classes (positive: the second class), regression and novelty (negative: alarm); else one a class.
  decision(X) { return this.#shown(this.#scores(X)); }
  // Classes, targets, or 1 and -1 for alarms.
  predict(X) {
    const scores = this.decision(X);
    if (this.#estimator === "KernelRegressor") return Array.from(scores);
    if (this.#estimator === "KernelNovelty") return Array.from(scores, (score) => (score < 0 ? -1 : 1));
    const classes = this.classes;
    return this.#best(scores).map((place) => classes[place]);
  }
  // The place in `classes` of the class that each row is given, from what `decision` returned.
  #best(shown) {
    const last = this.#labels.length - 1;
    if (shown instanceof Float64Array) return Array.from(shown, (score) => (score >= 0 ? last : 0));
    return shown.map((row) => row.indexOf(Math.max(...row)));
  }
  predictOne(x) { return this.predict([x])[0]; }
  // A row an event, a column a class in the order of `classes`; the class that `predict` returns has the largest.
  probabilities(X) {
    if (this.#estimator !== "KernelClassifier") throw new TypeError(`a ${this.#estimator} has no probabilities`);
    const scores = this.#scores(X).slice(), known = this.#labels.length, order = this.#order();
    if (!this.#core.with([scores], (at) => this.#core.call.gm_probabilities(this.#at, at, scores.length))) this.#core.fail();
    const shares = this.#core.numbers(), best = this.#best(this.#shown(scores));
    return best.map((place, row) => agreeing(Float64Array.from(order, (code) => shares[row * known + code]), place));
  }
  // Scores at columns x rows places of a rectangle, for models of two columns: {scores, outputs, order}. scores[(row * columns +
  // column) * outputs + o] is of class order[o] in order of arrival where outputs > 1; else positive means the second that came.
  // A view of the core's memory, which lasts until the next call; equal to `decision` to 1e-12.
  grid({ left, right, top, bottom, columns, rows }) {
    const at = this.#started();
    if (this.width !== 2 || columns < 2 || rows < 2) throw new RangeError(`a grid needs a model of 2 columns and sides of 2 places, got ${this.width}`);
    if (!this.#core.call.gm_grid(at, left, right, top, bottom, columns, rows)) this.#core.fail();
    return { scores: this.#core.numbers(), outputs: this.outputs, arrived: this.#labels.map(({ label }) => label) };
  }

  // ---- what it holds

  get estimator() { return this.#estimator; }
  get parts() { return this.#parts; }
  get width() { return this.#core.call.gm_width(this.#started()); }
  get outputs() { return this.#core.call.gm_outputs(this.#started()); }
  get size() { return this.#at ? this.#core.call.gm_size(this.#at) : 0; }
  get seen() { return this.#at ? this.#core.call.gm_seen(this.#at) : 0; }
  get memoryBytes() { return this.#at ? this.#core.call.gm_bytes(this.#at) : 0; }
  // The stored points, oldest first: [{point, coefficients, id}]; coefficients one an output, id the position in the stream.
  get stored() {
    if (!this.#at) return [];
    if (!this.#core.call.gm_stored(this.#at)) this.#core.fail();
    const all = this.#core.numbers(), { width, outputs } = this, step = width + outputs + 1;
    return Array.from({ length: all.length / step }, (_, row) => ({
      point: all.slice(row * step, row * step + width),
      coefficients: all.slice(row * step + width, row * step + width + outputs),
      id: all[(row + 1) * step - 1],
    }));
  }

  // ---- saving

  // The bytes of a model file, which `open` and Python's gristmill.load read.
  save() {
    const at = this.#started(), core = this.#core, { call } = core, arrays = {};
    const fields = call.gm_save(at) || core.fail();
    for (let i = 0; i < fields; i++) {
      const [dtype, width] = FIELD_TYPES[call.gm_field_type(i)];
      const shape = Array.from({ length: call.gm_field_rank(i) }, (_, axis) => call.gm_field_extent(i, axis));
      const bytes = core.bytes(call.gm_field_data(i), width * shape.reduce((a, b) => a * b, 1));
      arrays[core.text(call.gm_field_name(i))] = { dtype, shape, bytes };
    }
    const shape = [this.size, this.width], [dtype, width] = this.#single ? ["F32", 4] : ["F64", 8];
    arrays.points = { dtype, shape, bytes: core.bytes(call.gm_points_data(), width * shape[0] * shape[1]) };
    const { kernel, rule, budget, average, classWeight } = this.#parts;
    const weights = classWeight instanceof Map ? { type: "dict", items: [...classWeight] } : classWeight;
    const parameters = this.#metadata?.parameters ?? {
      average, budget, kernel, n_jobs: 1, passes: 1, random_state: null, rule,
      ...(this.#estimator === "KernelClassifier" ? { class_weight: weights } : {}),
    };
    const fitted = { kernel, rule, budget, average, n_features_in: this.width, ...this.#metadata?.fitted };
    if (this.#labels.length) fitted.labels = this.#labels.map(({ text }) => text);
    const metadata = { format: FORMATS.at(-1), version: core.text(call.gm_version()), isa: "baseline", class: this.#estimator, parameters, fitted };
    return writeFile(metadata, arrays, (data) => core.digest(data));
  }

  // Gives the memory back at once; else the garbage collector does some time.
  free() {
    if (!this.#at) return;
    this.#core.finished.unregister(this);
    this.#core.call.gm_delete(this.#at);
    this.#at = 0;
  }
}

function partFrom(fields) {
  const made = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value?.type in PARTS ? partFrom(value) : value]));
  return makePart(fields.type, made);
}

// Probabilities of which none is as large as that of the class at `best`, as `predict_proba` in Python has them: those that
// are larger are lowered to just below it, and the row is divided by its sum.
function agreeing(shares, best) {
  const limit = shares[best] * (1 - 1e-9);
  if (shares.every((share, place) => place === best || share <= limit)) return shares;
  const cut = shares.map((share, place) => (place === best ? share : Math.min(share, limit)));
  const sum = cut.reduce((total, share) => total + share, 0);
  return cut.map((share) => share / sum);
}

// Rows as one array of doubles.
function rowsOf(X, width) {
  if (X?.data instanceof Float64Array) {
    const count = X.data.length / X.width;
    if (!Number.isInteger(count) || (width !== undefined && width !== X.width)) throw new RangeError(`rows of ${X.width} numbers, where ${width} are needed`);
    return { data: X.data, count, width: X.width };
  }
  const columns = width ?? X?.[0]?.length;
  if (!(columns > 0)) throw new RangeError("X must be rows of numbers, at least one");
  const data = new Float64Array(X.length * columns);
  X.forEach((row, at) => {
    if (row.length !== columns) throw new RangeError(`row ${at} has ${row.length} numbers, where ${columns} are needed`);
    for (let j = 0; j < columns; j++) {
      if (typeof row[j] !== "number") throw new TypeError(`row ${at}, column ${j}: ${JSON.stringify(row[j])} is no number`);
      data[at * columns + j] = row[j];
    }
  });
  return { data, count: X.length, width: columns };
}
