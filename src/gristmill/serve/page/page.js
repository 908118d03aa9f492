"use strict";
// The page asks for /curves every second and draws; it loads nothing from elsewhere.
const $ = (id) => document.getElementById(id);
const plots = {};
const KEPT = 900; // seconds of the curves over time
let token = sessionStorage.getItem("token") || "";
let shown = "";
let points = []; // by the second, of the model that is shown
let drifts = []; // positions

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colors = ["--one", "--two", "--three", "--four"];

// ---- numbers ----------------------------------------------------------------------------------------------------

function short(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1000 ? Math.round(value).toLocaleString("en") : size >= 0.001 || size === 0 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}
const percent = (value) => value === null || value === undefined ? "–" : `${Number((100 * value).toFixed(Math.abs(value) < 0.1 ? 2 : 1))} %`;
const bytes = (value) => value === null || value === undefined ? "–"
  : value >= 1e9 ? `${(value / 1e9).toFixed(1)} GB` : value >= 999500 ? `${(value / 1e6).toFixed(1)} MB` : `${Math.round(value / 1e3)} kB`;
const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
const last = (list) => list.length ? list[list.length - 1] : undefined;

// ---- parts of the page ------------------------------------------------------------------------------------------

async function ask(path) {
  const response = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (response.status === 401) { $("token-form").hidden = false; $("main").hidden = true; throw new Error("a token is needed"); }
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  $("token-form").hidden = true;
  return response.json();
}

// Lines of `data` over data[0]; `options.time` for seconds, `options.format` for values, `options.second` for lines with a scale of their own.
function draw(id, names, data, options = {}) {
  const box = $(id);
  const format = options.format || short;
  const second = new Set(options.second || []);
  const tell = (index) => {
    const parts = names.map((name, i) => {
      const item = document.createElement("span"), line = document.createElement("i"), value = document.createElement("b");
      line.style.borderColor = color(colors[i % 4]);
      value.textContent = format(data[i + 1][index], i);
      item.append(line, `${name} `, value);
      return item;
    });
    if (options.marks) {
      const item = document.createElement("span"), line = document.createElement("i");
      line.className = "mark";
      line.style.borderColor = color("--fore");
      item.append(line, "drift");
      parts.push(item);
    }
    if (index !== data[0].length - 1 && data[0][index] !== undefined) parts.push(options.time ? clock(data[0][index]) : `at ${short(data[0][index])}`);
    $(`${id}-legend`).replaceChildren(...parts);
  };
  const newest = () => { let i = data[0].length - 1; while (i > 0 && data.slice(1).every((line) => line[i] === null)) i--; return i; };
  box.setAttribute("aria-label", names.map((name, i) => `${name} ${format(data[i + 1][newest()], i)}`).join(", "));
  const plot = plots[id];
  if (plot && plot.names === names.join()) {
    plot.tell = tell;
    plot.newest = newest;
    plot.setData(data);
    if (plot.cursor.idx === null || plot.cursor.idx === undefined) tell(newest());
    return;
  }
  if (plot) plot.destroy();
  const axis = (more) => ({ stroke: color("--soft"), font: "12px system-ui", grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false }, ...more });
  const scales = { x: { time: Boolean(options.time) }, y: { range: (_, low, high) => options.from0 === false ? [low, high] : [0, high > 0 ? 1.05 * high : 1] } };
  const axes = [axis(options.time ? { size: 28, space: 90, values: (_, ticks) => ticks.map(clock) } : { size: 28, space: 70, values: (_, ticks) => ticks.map(options.across || short) }),
    axis({ size: 56, values: (_, ticks) => ticks.map((value) => format(value, 0)) })];
  if (second.size) {
    scales.second = { range: (_, low, high) => [0, high > 0 ? 1.05 * high : 1] };
    axes.push(axis({ scale: "second", side: 1, size: 56, grid: { show: false }, values: (_, ticks) => ticks.map(short) }));
  }
  const created = new uPlot({
    width: box.clientWidth, height: box.clientHeight, legend: { show: false }, padding: [8, second.size ? 0 : 28, 0, 0], scales, axes,
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
    series: [{}, ...names.map((label, i) => ({
      label, stroke: color(colors[i % 4]), width: 1.8, spanGaps: true, scale: second.has(i) ? "second" : "y",
      points: { show: data[0].length < 30, size: 5 }, dash: options.dashed && options.dashed.includes(i) ? [5, 5] : undefined }))],
    hooks: {
      setCursor: [(self) => { if (self.tell) self.tell(self.cursor.idx ?? self.newest()); }],
      draw: options.marks ? [markDrifts] : [],
    },
  }, data, box);
  Object.assign(created, { names: names.join(), tell, newest });
  plots[id] = created;
  tell(newest());
}

function markDrifts(self) {
  const { ctx, bbox } = self;
  ctx.save();
  ctx.strokeStyle = color("--fore");
  ctx.globalAlpha = 0.6;
  ctx.setLineDash([2, 4]);
  ctx.lineWidth = devicePixelRatio;
  for (const position of drifts) {
    const x = Math.round(self.valToPos(position, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

const isNumber = (cell) => typeof (cell?.best ?? cell) === "number" || (typeof cell === "string" && /^[-–\d.,]+( (%|kB|MB|GB))?$/.test(cell));

// A table; a cell is a text, a number, or {bar: share}, {text: long text}, {best: number}.
function table(id, head, lines) {
  const box = $(id);
  box.closest("section").hidden = lines.length === 0;
  const top = document.createElement("tr");
  for (const [i, name] of head.entries()) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    if (lines.length && isNumber(lines[0][i])) cell.className = "number";
    top.append(cell);
  }
  const body = lines.map((line) => {
    const row = document.createElement("tr");
    for (const cell of line) {
      const box = document.createElement("td");
      if (cell !== null && typeof cell === "object" && "bar" in cell) {
        const bar = document.createElement("div");
        bar.style.width = `${Math.max(0, Math.min(100, 100 * cell.bar))}%`;
        box.className = "bar";
        box.append(bar);
      } else if (cell !== null && typeof cell === "object" && "text" in cell) {
        box.className = "text";
        box.textContent = box.title = cell.text;
      } else if (cell !== null && typeof cell === "object") {
        box.className = "number best";
        box.textContent = short(cell.best);
      } else {
        if (isNumber(cell)) box.className = "number";
        box.textContent = short(cell);
      }
      row.append(box);
    }
    return row;
  });
  box.replaceChildren(...(head.some(Boolean) ? [top] : []), ...body);
}

function tiles(found, now) {
  const entries = found.task === "regression"
    ? [["mean error, last 1,000", short(found.metrics.mae_recent)], ["of all events", short(found.metrics.mae)]]
    : found.task === "novelty"
      ? [["alarms, last 1,000", percent(found.metrics.alarm_rate_recent)], ["of all events", percent(found.metrics.alarm_rate)]]
      : [["wrong, last 1,000", percent(found.metrics.error_recent)], ["of all events", percent(found.metrics.error)]];
  entries.push(["events learned", short(found.position)], ["rows learned per second", short(Math.round(now.learned_per_second ?? 0))],
    ["waiting for a label", short(found.waiting)], ["memory", bytes(found.memory_bytes)]);
  $("tiles").replaceChildren(...entries.map(([name, value]) => {
    const box = document.createElement("div"), label = document.createElement("span"), number = document.createElement("b");
    box.className = "tile";
    label.textContent = name;
    number.textContent = value;
    box.append(label, number);
    return box;
  }));
}

// ---- the whole --------------------------------------------------------------------------------------------------

const plainExpert = (text) => text.replace(/^Prepared\((?=Kernel)/, "").replace(/^Kernel(Classifier|Regressor|Novelty)\(/, "")
  .replace(/\d+\.\d{4,}/g, (digits) => String(Number(Number(digits).toPrecision(3))));

function drawError(found) {
  const titles = { error: "Wrong predictions", mae: "Mean absolute error", alarm_rate: "Alarms" };
  $("error-title").textContent = `${titles[found.metric]} by position`;
  const other = found.challenger ? new Map(found.challenger.curve.map((entry) => [entry[0], entry[1]])) : null;
  const data = [found.curve.map((e) => e[0]), found.curve.map((e) => e[1]), found.curve.map((e) => e[2])];
  if (other) data.push(found.curve.map((e) => other.get(e[0]) ?? null));
  drifts = found.drifts.map((mark) => mark.position);
  draw("error", ["last 1,000", "all", ...(other ? ["challenger"] : [])], data, { format: found.metric === "mae" ? short : percent, marks: true });
}

function drawTime() {
  const time = points.map((point) => point.time);
  const line = (key, scale = 1) => points.map((point) => point[key] === null || point[key] === undefined ? null : point[key] * scale);
  draw("rate", ["learned", "predicted"], [time, line("learned_per_second"), line("predicted_per_second")], { time: true, format: (v) => short(v === null || v === undefined ? v : Math.round(v)) });
  draw("latency", ["learn p50", "learn p99", "predict p50", "predict p99"],
    [time, ...["learn_p50_ms", "learn_p99_ms", "predict_p50_ms", "predict_p99_ms"].map((key) => line(key))], { time: true });
  draw("size", ["memory", "stored points"], [time, line("memory_bytes", 1e-3), line("n_support")],
    { time: true, second: [1], format: (v) => short(v === null || v === undefined ? v : Math.round(v)) });
}

function drawModel(found) {
  const calibrated = found.calibration.filter((bin) => bin.count >= 5);
  $("calibration").closest("section").hidden = calibrated.length < 2;
  if (calibrated.length >= 2) {
    const chance = calibrated.map((bin) => bin.probability);
    draw("calibration", ["share that was right", "probability given"], [chance, calibrated.map((bin) => bin.right), chance], { format: percent, across: percent, dashed: [1] });
  }
  const counts = Object.entries(found.counts).sort((a, b) => b[1][0] - a[1][0]);
  const most = Math.max(1, ...counts.map(([, [n]]) => n));
  table("classes", ["class", "events", "", "right"], counts.map(([name, [n, right]]) => [name, n, { bar: n / most }, percent(right / n)]));
  const weights = (found.weights || []).map((weight, i) => [weight, (found.experts || [])[i]]).sort((a, b) => b[0] - a[0]);
  const heavy = weights.filter(([weight]) => weight >= 0.005);
  const lines = heavy.map(([weight, name]) => [{ text: plainExpert(name || "") }, { bar: weight }, percent(weight)]);
  if (weights.length > heavy.length) lines.push([`${weights.length - heavy.length} more below 0.5 %`, "", ""]);
  table("experts", ["expert", "", "weight"], lines);
  const shares = Object.entries(found.relevance || {}).sort((a, b) => b[1] - a[1]);
  const top = Math.max(1e-9, ...shares.map(([, share]) => share));
  table("relevance", ["column", "", "share"], shares.slice(0, 50).map(([name, share]) => [name, { bar: share / top }, percent(share)]));
}

function drawChallenger(found) {
  const other = found.challenger;
  if (!other) { table("challenger", [], []); return; }
  const keys = Object.keys(found.metrics).filter((key) => key !== "scored");
  const better = (mine, theirs) => typeof mine === "number" && typeof theirs === "number" && mine < theirs ? { best: mine } : mine;
  table("challenger", ["", ...["events", ...keys.map((key) => key.replaceAll("_", " "))]], [
    ["champion", found.metrics.scored, ...keys.map((key) => better(found.metrics[key], other.metrics[key]))],
    [other.status, other.metrics.scored, ...keys.map((key) => better(other.metrics[key], found.metrics[key]))]]);
  const foot = document.createElement("caption");
  foot.textContent = `champion ${found.learner}, challenger ${other.learner}${other.reason ? `: ${other.reason}` : ""}`;
  $("challenger").append(foot);
}

function drawNotices(found) {
  const reason = (alarm) => alarm.reasons.map((one) => `${one.column} = ${short(one.value)}`).join(", ") || "no single column";
  table("alarms", ["time", "position", "score", "reasons"],
    [...found.alarms].reverse().map((alarm) => [clock(alarm.time), alarm.position, alarm.score, { text: reason(alarm) }]));
  const format = found.metric === "mae" ? short : percent;
  table("drifts", ["position", "before", "after"], [...found.drifts].reverse().slice(0, 50).map((mark) => [mark.position, format(mark.before), format(mark.after)]));
  table("storage", [], [["journal", bytes(found.journal.bytes)], ["snapshots", found.snapshots.length],
    ["newest snapshot", found.snapshots.length ? `position ${short(found.snapshots[0].position)}` : "none yet"],
    ["requests that wait", found.queue], ["labels that never came", found.expired]]);
}

function drawAll(found) {
  $("main").hidden = false;
  points = [...points, ...found.time].slice(-KEPT);
  $("about").textContent = $("about").title = `${found.task}, ${found.learner}`;
  tiles(found, last(points) || {});
  drawError(found);
  drawTime();
  drawModel(found);
  drawChallenger(found);
  drawNotices(found);
  Object.assign(document.body.dataset, { position: found.position, model: found.name });
}

function forget() {
  for (const id of Object.keys(plots)) { plots[id].destroy(); delete plots[id]; }
}

async function turn() {
  let state = "live", text = "live";
  try {
    const names = (await ask("/v1/models")).models.map((model) => model.name);
    const select = $("model");
    if (names.join() !== [...select.options].map((option) => option.value).join()) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
      const wanted = shown || decodeURIComponent(location.hash.slice(1));
      if (names.includes(wanted)) select.value = wanted;
    }
    if (shown !== select.value) { shown = select.value; points = []; forget(); }
    $("empty").hidden = names.length > 0;
    if (shown) {
      const since = points.length ? last(points).time : 0;
      const asked = shown;
      const found = await ask(`/v1/models/${encodeURIComponent(asked)}/curves?after=${since}`);
      if (asked === shown && asked === select.value) drawAll(found);
      if (found.status !== "ready") { state = "error"; text = found.error || "not available"; }
    } else { state = "wait"; text = "no model yet"; $("main").hidden = true; }
  } catch (error) {
    state = "error";
    text = error.message === "Failed to fetch" ? "the service does not answer" : error.message;
  }
  $("state").textContent = text;
  $("state").dataset.state = state;
  setTimeout(turn, document.hidden ? 5000 : 1000);
}

$("model").addEventListener("change", () => { location.hash = $("model").value; });
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  sessionStorage.setItem("token", token);
  $("token").value = "";
});
addEventListener("resize", () => { for (const [id, plot] of Object.entries(plots)) plot.setSize({ width: $(id).clientWidth, height: $(id).clientHeight }); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forget);
turn();
