// The playground: controls, the loop of events and frames, and drawing by hand. Learners run in the core, see gristmill.js.

import { load } from "./gristmill.js";
import { ALGORITHMS, BUDGETS, KERNELS, RULES, algorithmOf, composition, program, sentenceOf } from "./learners.js";
import { COLOURS, CURVES, Surface, curves } from "./draw.js";
import { Drawing, LONGEST, STREAMS, VIEW } from "./streams.js";

const WINDOW = 200; // events over which the error is shown
const SAMPLE = 20; // events between points of the curves
const RECENT = 120; // events that are drawn
const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");

const settings = {};
const state = { stream: "turning", events: [], drawing: new Drawing(), label: 0, paused: false, down: false, cursor: { x: 0, y: 0 }, due: 0, frames: [] };
const panels = [];
let gristmill;

// ---- panels -------------------------------------------------------------------------------------------------------

class Panel {
  constructor(algorithm) {
    const { rule, budget } = ALGORITHMS[algorithm];
    Object.assign(this, { rule, budget });
    this.element = $("panel").content.firstElementChild.cloneNode(true);
    const find = (name) => this.element.querySelector(name);
    this.surface = new Surface(find("canvas"));
    this.fill(find(".algorithm"), [...Object.keys(ALGORITHMS), "own combination"].map((name) => [name, name]), (name) => Object.assign(this, ALGORITHMS[name]));
    this.fill(find(".rule"), Object.entries(RULES).map(([name, { title }]) => [name, title]), (name) => (this.rule = name));
    this.fill(find(".budget"), Object.entries(BUDGETS).map(([name, { title }]) => [name, title]), (name) => (this.budget = name));
    listenToDrawing(find("canvas"));
    $("panels").append(this.element);
    this.restart();
  }
  fill(select, options, choose) {
    for (const [value, title] of options) select.add(new Option(title, value));
    select.addEventListener("change", () => {
      choose(select.value);
      this.restart();
    });
  }
  // Learns all events so far again, with the settings of now.
  restart() {
    this.model?.free();
    this.model = null;
    this.refused = "";
    this.wrong = 0;
    this.misses = [];
    this.history = [];
    this.surface.forget();
    const find = (name) => this.element.querySelector(name), which = panels.indexOf(this);
    find(".algorithm").value = algorithmOf(this) ?? "own combination";
    find(".rule").value = this.rule;
    find(".budget").value = this.budget;
    find(".says").textContent = sentenceOf(this);
    find(".swatch").style.background = CURVES[which < 0 ? panels.length : which];
    try {
      this.model = gristmill.classifier(composition(this, settings));
    } catch (error) {
      this.refused = error.message;
    }
    state.events.forEach((event, t) => this.learn(event, t));
  }
  learn({ x, y, label }, t) {
    if (this.refused) return;
    try {
      const miss = (this.model.seen ? this.model.predictOne([x, y]) : undefined) !== label;
      this.model.learnOne([x, y], label);
      this.wrong += miss;
      this.misses.push(miss ? 1 : 0);
    } catch (error) {
      this.refused = error.message;
      return;
    }
    if ((t + 1) % SAMPLE === 0) this.history.push({ t: t + 1, error: this.error, size: this.model.size, bytes: this.model.memoryBytes });
  }
  get error() {
    const last = this.misses.slice(-WINDOW);
    return last.length ? last.reduce((a, b) => a + b, 0) / last.length : 0;
  }
  show(now) {
    const numbers = this.element.querySelector(".numbers");
    numbers.classList.toggle("refused", Boolean(this.refused));
    numbers.textContent = this.refused ||
      `${(100 * this.error).toFixed(1)}% wrong · ${this.model.size} points · ${(this.model.memoryBytes / 1000).toFixed(1)} kB`;
    this.surface.draw(this.refused ? null : this.model, state.events.slice(-RECENT), (id) => state.events[id], dark.matches, now);
    if (state.stream === "drawing" && this.element.contains(document.activeElement)) this.cross();
  }
  cross() {
    const { context, canvas } = this.surface, x = ((state.cursor.x - VIEW.left) / (VIEW.right - VIEW.left)) * canvas.width;
    const y = ((VIEW.top - state.cursor.y) / (VIEW.top - VIEW.bottom)) * canvas.height, arm = canvas.width / 30;
    context.strokeStyle = COLOURS[state.label];
    context.lineWidth = canvas.width / 160;
    context.beginPath();
    context.moveTo(x - arm, y), context.lineTo(x + arm, y), context.moveTo(x, y - arm), context.lineTo(x, y + arm);
    context.stroke();
  }
}

function addPanel() {
  if (panels.length === 4) return;
  const used = panels.map(algorithmOf), next = ["Perceptron", "Forgetron", "Merge", "NORMA", "Projectron", "Passive-aggressive"].find((name) => !used.includes(name));
  panels.push(new Panel(next));
  arrange();
}
function removePanel() {
  if (panels.length === 1) return;
  const last = panels.pop();
  last.model?.free();
  last.element.remove();
  arrange();
}
function arrange() {
  $("panels").style.setProperty("--columns", panels.length === 4 ? 2 : panels.length);
  $("more").disabled = panels.length === 4;
  $("fewer").disabled = panels.length === 1;
}

// ---- events -------------------------------------------------------------------------------------------------------

function take(event) {
  state.events.push(event);
  for (const panel of panels) panel.learn(event, state.events.length - 1);
}
// The next event of the stream; false where there is none.
function next() {
  const t = state.events.length;
  if (t >= LONGEST) return false;
  if (state.stream !== "drawing") take(STREAMS[state.stream].event(t, settings.noise));
  else if (state.drawing.points.length && !state.down) take(state.drawing.again(t));
  else return false;
  return true;
}
function restart() {
  state.events = [];
  state.drawing = new Drawing();
  relearn();
}
function relearn() {
  for (const panel of panels) panel.restart();
}

// ---- drawing by hand ----------------------------------------------------------------------------------------------

function draw(x, y) {
  if (state.stream !== "drawing") {
    $("stream").value = state.stream = "drawing";
    tell();
    restart();
  }
  const rounded = (value) => Math.round(1000 * value) / 1000;
  if (state.events.length < LONGEST) take(state.drawing.add(rounded(x), rounded(y), state.label));
}
function listenToDrawing(canvas) {
  const place = ({ offsetX, offsetY }) => [
    VIEW.left + (offsetX / canvas.clientWidth) * (VIEW.right - VIEW.left), VIEW.top - (offsetY / canvas.clientHeight) * (VIEW.top - VIEW.bottom),
  ];
  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    state.down = true;
    last = place(event);
    draw(...last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!state.down || !last) return;
    const here = place(event);
    if (Math.hypot(here[0] - last[0], here[1] - last[1]) < 0.07) return; // a stroke is a row of points
    last = here;
    draw(...here);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => ((state.down = false), (last = null)));
  canvas.addEventListener("keydown", (event) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (dx || dy) {
      state.cursor.x = Math.min(VIEW.right, Math.max(VIEW.left, state.cursor.x + dx * 0.1));
      state.cursor.y = Math.min(VIEW.top, Math.max(VIEW.bottom, state.cursor.y + dy * 0.1));
    } else if (event.key === " " || event.key === "Enter") draw(state.cursor.x, state.cursor.y);
    else return;
    event.preventDefault();
  });
}

// ---- controls -----------------------------------------------------------------------------------------------------

const power = (digits) => (value) => Number((10 ** value).toPrecision(digits));
const SLIDERS = {
  speed: power(2), noise: Number, width: power(2), degree: Number, size: Number, C: power(2), rate: power(2), tolerance: Number,
};
function readSlider(id) {
  settings[id] = SLIDERS[id](Number($(id).value));
  document.querySelector(`output[for="${id}"]`).textContent = settings[id];
}
function chooseClass(label) {
  state.label = label;
  [...$("classes").children].forEach((button, at) => button.setAttribute("aria-checked", String(at === label)));
}
function tell() {
  $("about").textContent = STREAMS[state.stream]?.about ?? "Draw points of two to four classes; they are repeated in an even order, as a stream.";
}
function pause(paused = !state.paused) {
  state.paused = paused;
  $("pause").textContent = paused ? "Go on" : "Pause";
}
function code() {
  const stream = state.stream === "drawing" ? state.drawing.python() : STREAMS[state.stream].python(state.events.length, settings.noise);
  return program(panels.filter(({ refused }) => !refused), settings, stream);
}
async function copy() {
  pause(true); // so that what is copied is what is seen
  $("code").textContent = code();
  $("code-box").open = true;
  try {
    await navigator.clipboard.writeText($("code").textContent);
    $("status").textContent = "Copied. The program prints the same numbers of errors and points.";
  } catch {
    $("status").textContent = "The browser did not allow copying; the program is below the curves.";
  }
}
function saveModel() {
  const panel = panels.find(({ refused, model }) => !refused && model.seen);
  if (!panel) return;
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([panel.model.save()])), download: "playground.safetensors" });
  link.click();
  URL.revokeObjectURL(link.href);
  $("status").textContent = "Saved as playground.safetensors: gristmill.load reads it in Python.";
}

function prepare() {
  for (const [name, { title }] of Object.entries(STREAMS)) $("stream").add(new Option(title, name));
  $("stream").add(new Option("Draw your own", "drawing"));
  for (const [name, { title }] of Object.entries(KERNELS)) $("kernel").add(new Option(title, name));
  for (const label of COLOURS.keys()) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: `${"●■▲◆"[label]} ${label + 1}` });
    button.style.color = COLOURS[label];
    button.setAttribute("role", "radio");
    button.setAttribute("aria-label", `Class ${label + 1}`);
    button.addEventListener("click", () => chooseClass(label));
    $("classes").append(button);
  }
  chooseClass(0);
  let waiting = false;
  for (const id of Object.keys(SLIDERS)) {
    readSlider(id);
    $(id).addEventListener("input", () => {
      readSlider(id);
      if (id === "speed" || waiting) return;
      waiting = true; // at most one new run a frame
      requestAnimationFrame(() => {
        waiting = false;
        if (id === "noise" && state.stream !== "drawing") state.events = state.events.map((_, t) => STREAMS[state.stream].event(t, settings.noise));
        relearn();
      });
    });
  }
  const chooseKernel = () => {
    settings.kernel = $("kernel").value;
    $("of-width").hidden = settings.kernel === "Polynomial";
    $("of-degree").hidden = settings.kernel !== "Polynomial";
  };
  chooseKernel();
  $("kernel").addEventListener("change", () => (chooseKernel(), relearn()));
  $("stream").addEventListener("change", () => {
    state.stream = $("stream").value;
    tell();
    restart();
  });
  $("pause").addEventListener("click", () => pause());
  $("step").addEventListener("click", () => (pause(true), next()));
  $("restart").addEventListener("click", restart);
  $("more").addEventListener("click", addPanel);
  $("fewer").addEventListener("click", removePanel);
  $("copy").addEventListener("click", copy);
  $("save").addEventListener("click", saveModel);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
    if (event.key >= "1" && event.key <= "4") chooseClass(Number(event.key) - 1);
    else if (event.key === "p") pause();
    else if (event.key === "r") restart();
  });
}

// ---- the loop -----------------------------------------------------------------------------------------------------

let before = 0;
function frame(now) {
  const passed = Math.min(now - before, 100);
  before = now;
  state.frames = [...state.frames.filter((at) => now - at < 1000), now];
  if (!state.paused) {
    state.due += (passed / 1000) * settings.speed;
    const until = performance.now() + 12; // a slow machine shows fewer events a second, not fewer frames
    while (state.due >= 1 && performance.now() < until && next()) state.due--;
    state.due = Math.min(state.due, 2);
  }
  for (const panel of panels) panel.show(now);
  curves($("error"), panels.map(({ history }) => history.map(({ t, error }) => ({ t, value: 100 * error }))), {
    title: `wrong in the last ${WINDOW} events`, format: (value) => `${value.toFixed(0)}%`, dark: dark.matches, least: 10,
  });
  curves($("memory"), panels.map(({ history }) => history.map(({ t, bytes }) => ({ t, value: bytes / 1000 }))), {
    title: "memory", format: (value) => `${value.toFixed(1)} kB`, dark: dark.matches, least: 1,
  });
  if (state.events.length >= LONGEST) $("status").textContent = `${LONGEST.toLocaleString("en")} events: the stream ends here. Restart, or change a setting.`;
  requestAnimationFrame(frame);
}

gristmill = await load().catch((error) => {
  $("status").textContent = `gristmill.wasm is missing (${error.message}): run make playground, and serve this folder over HTTP.`;
  throw error;
});
prepare();
tell();
for (let count = 0; count < 3; count++) addPanel();
requestAnimationFrame(frame);
// For tests, and for the console.
globalThis.playground = { state, settings, panels, next, pause, restart, code };
