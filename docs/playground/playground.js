// The playground: controls, the loop of events and frames, and drawing by hand. Learners run in the core, see gristmill.js.

import { load } from "./gristmill.js";
import { ALGORITHMS, COMPARISONS, KERNELS, algorithmOf, nameOf, program } from "./learners.js";
import { COLOURS, curves } from "./draw.js";
import { Panel, WINDOW } from "./panel.js";
import { Drawing, LONGEST, STREAMS, VIEW } from "./streams.js";

const SURFACES = 16; // milliseconds of a frame for computing surfaces; who finds none left is first in the next
const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)"), still = matchMedia("(prefers-reduced-motion: reduce)");

const settings = {};
const state = { stream: "turning", events: [], drawing: new Drawing(), label: 0, paused: false, down: false, cursor: { x: 0, y: 0 }, due: 0, frames: [] };
const panels = [];
let gristmill;

// ---- panels -------------------------------------------------------------------------------------------------------

function addPanel(chosen) {
  if (panels.length === 4) return;
  const used = panels.map(algorithmOf), next = ["Perceptron", "Forgetron", "Merge", "NORMA", "Projectron", "Passive-aggressive"].find((name) => !used.includes(name));
  const panel = new Panel(gristmill, chosen ?? { ...ALGORITHMS[next], size: panels.at(-1)?.size ?? 40 });
  listenToDrawing(panel.surface.canvas);
  panel.element.addEventListener("learner", () => {
    showSettings();
    panel.restart(settings, state.events);
  });
  panel.element.querySelector(".remove").addEventListener("click", () => removePanel(panel));
  panel.element.querySelector(".save").addEventListener("click", () => save(panel));
  $("panels").append(panel.element);
  panels.push(panel);
  panel.restart(settings, state.events);
  arrange();
}
function removePanel(panel) {
  panel.model?.free();
  panel.element.remove();
  panels.splice(panels.indexOf(panel), 1);
  arrange();
}
function arrange() {
  $("panels").style.setProperty("--columns", panels.length);
  $("panels").classList.toggle("many", panels.length === 4);
  $("more").disabled = panels.length === 4;
  for (const panel of panels) panel.element.querySelector(".remove").disabled = panels.length === 1;
  showSettings();
}
// Only the settings that a learner reads.
function showSettings() {
  const uses = (field, value) => panels.some((panel) => panel[field] === value);
  $("of-width").hidden = settings.kernel === "Polynomial";
  $("of-degree").hidden = settings.kernel !== "Polynomial";
  $("of-C").hidden = !uses("rule", "PassiveAggressive");
  $("of-rate").hidden = !uses("rule", "SGD");
  $("of-tolerance").hidden = !uses("budget", "Project");
  $("of-noise").hidden = state.stream === "digits" || state.stream === "drawing";
}
function compare(name) {
  for (const panel of [...panels]) removePanel(panel);
  for (const { rule, budget, size } of COMPARISONS[name].panels) addPanel({ rule, budget, size });
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
  for (const panel of panels) panel.restart(settings, state.events);
}

// ---- drawing by hand ----------------------------------------------------------------------------------------------

function draw(x, y) {
  if (state.stream !== "drawing") {
    state.stream = "drawing";
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
  speed: power(2), noise: Number, width: power(2), degree: Number, C: power(2), rate: power(2), tolerance: Number,
};
function readSlider(id) {
  settings[id] = SLIDERS[id](Number($(id).value));
  document.querySelector(`output[for="${id}"]`).textContent = settings[id];
}
function chooseClass(label) {
  state.label = label;
  [...$("classes").children].forEach((button, at) => button.setAttribute("aria-pressed", String(at === label)));
}
// After a change of the stream.
function tell() {
  $("stream").value = state.stream;
  showSettings();
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
    $("status").textContent = "Copied. The program prints the same numbers of errors and points as the learners above.";
  } catch {
    $("status").textContent = "The browser did not allow copying; the program is below the curves.";
  }
}
function save({ refused, model }) {
  if (refused || !model.seen) return;
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([model.save()])), download: "playground.safetensors" });
  link.click();
  URL.revokeObjectURL(link.href);
  $("status").textContent = "Saved as playground.safetensors: gristmill.load reads it in Python.";
}

function prepare() {
  for (const [name, { title }] of Object.entries(STREAMS)) $("stream").add(new Option(title, name));
  $("stream").add(new Option("Draw your own", "drawing"));
  for (const [name, { title }] of Object.entries(COMPARISONS)) $("compare").add(new Option(title, name));
  for (const [name, { title }] of Object.entries(KERNELS)) $("kernel").add(new Option(title, name));
  for (const label of COLOURS.keys()) {
    const button = Object.assign(document.createElement("button"), { type: "button" }), glyph = document.createElement("span");
    glyph.textContent = "●■▲◆"[label];
    glyph.style.color = COLOURS[label];
    button.append(glyph, ` ${label + 1}`);
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
  settings.kernel = $("kernel").value;
  $("kernel").addEventListener("change", () => {
    settings.kernel = $("kernel").value;
    showSettings();
    relearn();
  });
  $("compare").addEventListener("change", () => compare($("compare").value));
  $("stream").addEventListener("change", () => {
    state.stream = $("stream").value;
    tell();
    restart();
  });
  $("pause").addEventListener("click", () => pause());
  $("step").addEventListener("click", () => (pause(true), next()));
  $("restart").addEventListener("click", restart);
  $("more").addEventListener("click", () => addPanel());
  $("copy").addEventListener("click", copy);
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
    if (event.key >= "1" && event.key <= "4") chooseClass(Number(event.key) - 1);
    else if (event.key === "p") pause();
    else if (event.key === "r") restart();
  });
}

// ---- the loop -----------------------------------------------------------------------------------------------------

const greeting = $("status").textContent;
let before = 0, told = 0, first = 0, ended = false;
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
  const until = performance.now() + SURFACES;
  let waits = -1;
  for (let turn = 0; turn < panels.length; turn++) {
    const which = (first + turn) % panels.length, fresh = performance.now() < until;
    if (!fresh && waits < 0) waits = which;
    panels[which].show(which, { state, dark: dark.matches, still: still.matches, now, fresh });
  }
  first = Math.max(waits, 0);
  const lines = (value) => panels.map((panel) => ({ name: nameOf(panel), points: panel.history.map((one) => ({ t: one.t, value: value(one) })) }));
  const changes = STREAMS[state.stream]?.changes ?? [], common = { dark: dark.matches, from: WINDOW };
  curves($("error"), lines(({ error }) => 100 * error), changes, { ...common, title: `Wrong in the last ${WINDOW} events`, format: (value) => `${value}%`, least: 4 });
  curves($("memory"), lines(({ bytes }) => bytes / 1000), changes, { ...common, title: "Memory", format: (value) => `${value} kB`, least: 1 });
  if (now - told > 2000) describe((told = now));
  if (ended !== (state.events.length >= LONGEST)) { // once: other messages stay, and a screen reader repeats nothing
    ended = !ended;
    $("status").textContent = ended ? `${LONGEST.toLocaleString("en")} events: the stream ends here. Restart, or change a setting.` : greeting;
  }
  requestAnimationFrame(frame);
}
// The curves in words, for those who do not see them.
function describe() {
  const now = (text) => panels.map((panel) => `${nameOf(panel)} ${panel.refused ? "refused" : text(panel)}`).join(", ");
  $("error").setAttribute("aria-label", `Wrong in the last ${WINDOW} of ${state.events.length} events: ${now(({ error }) => `${(100 * error).toFixed(1)}%`)}`);
  $("memory").setAttribute("aria-label", `Memory: ${now(({ model }) => `${(model.memoryBytes / 1000).toFixed(1)} kB`)}`);
}

gristmill = await load().catch((error) => {
  $("status").textContent = `gristmill.wasm is missing (${error.message}): run make playground, and serve this folder over HTTP.`;
  throw error;
});
prepare();
// index.html#stream=switching&compare=sizes&kernel=Laplacian
const asked = new URLSearchParams(location.hash.slice(1));
if (asked.get("stream") in STREAMS) state.stream = asked.get("stream");
if (asked.get("kernel") in KERNELS) $("kernel").value = settings.kernel = asked.get("kernel");
if (asked.get("compare") in COMPARISONS) $("compare").value = asked.get("compare");
compare($("compare").value);
tell();
pause(still.matches);
requestAnimationFrame(frame);
// For tests, and for the console.
globalThis.playground = { state, settings, panels, next, pause, restart, code };
