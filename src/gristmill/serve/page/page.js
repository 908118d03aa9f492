"use strict";
// The page asks for /curves every second or two, and draws; it loads nothing from elsewhere.
const $ = (id) => document.getElementById(id);
const plots = {};
let token = sessionStorage.getItem("token") || "";
let shown = "";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

async function ask(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers });
  if (response.status === 401) { $("token-label").hidden = false; throw new Error("a token is needed"); }
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

function draw(id, names, data, time) {
  const box = $(id);
  if (plots[id] && plots[id].series.length === data.length) { plots[id].setData(data); return; }
  if (plots[id]) plots[id].destroy();
  const axis = () => ({ stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } });
  const strokes = [color("--one"), color("--two"), color("--soft"), color("--fore")];
  plots[id] = new uPlot({
    width: box.clientWidth, height: 170, scales: { x: { time } }, axes: [axis(), axis()],
    series: [{}, ...names.map((label, i) => ({ label, stroke: strokes[i % 4], width: 1.5, spanGaps: true, points: { show: data[0].length < 30 } }))],
  }, data, box);
}

function rows(id, head, lines) {
  const table = $(id);
  table.replaceChildren();
  table.closest("section").hidden = lines.length === 0;
  for (const [kind, cells] of [["th", head], ...lines.map((line) => ["td", line])]) {
    const row = table.insertRow();
    for (const cell of cells) {
      const box = document.createElement(kind);
      box.textContent = cell === null || cell === undefined ? "" : typeof cell === "number" ? short(cell) : String(cell);
      row.append(box);
    }
  }
}

const short = (value) => value === null || value === undefined ? "none"
  : Number.isInteger(value) ? value.toLocaleString("en") : Number(value).toPrecision(3);

function facts(found) {
  const list = $("facts");
  list.replaceChildren();
  const entries = {
    learner: found.learner, task: found.task, position: found.position, ...found.metrics, "stored points": found.n_support,
    "memory, bytes": found.memory_bytes, "waiting for labels": found.waiting, "labels that expired": found.expired,
    queue: found.queue, "journal, bytes": found.journal.bytes, snapshots: found.snapshots.length,
  };
  for (const [name, value] of Object.entries(entries)) {
    if (value === undefined) continue;
    const box = document.createElement("div"), term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name.replaceAll("_", " ");
    text.textContent = typeof value === "number" || value === null ? short(value) : value;
    box.append(term, text);
    list.append(box);
  }
}

function drawAll(found) {
  facts(found);
  $("error-title").textContent = `${found.metric.replaceAll("_", " ")} by position`;
  const other = found.challenger ? new Map(found.challenger.curve.map((entry) => [entry[0], entry[1]])) : null;
  const data = [found.curve.map((e) => e[0]), found.curve.map((e) => e[1]), found.curve.map((e) => e[2])];
  if (other) data.push(found.curve.map((e) => other.get(e[0]) ?? null));
  draw("error", ["last 1,000", "overall", ...(other ? ["challenger"] : [])], data, false);
  const time = found.time.map((point) => point.time);
  draw("rate", ["learned", "predicted"], [time, found.time.map((p) => p.learned_per_second), found.time.map((p) => p.predicted_per_second)], true);
  draw("latency", ["learn p50", "learn p99", "predict p50", "predict p99"],
    [time, ...["learn_p50_ms", "learn_p99_ms", "predict_p50_ms", "predict_p99_ms"].map((key) => found.time.map((p) => p[key]))], true);
  $("calibration").closest("section").hidden = found.calibration.length === 0;
  if (found.calibration.length) {
    draw("calibration", ["right", "ideal"], [found.calibration.map((b) => b.probability), found.calibration.map((b) => b.right), found.calibration.map((b) => b.probability)], false);
  }
  rows("classes", ["class", "events", "right"], Object.entries(found.counts).map(([name, [n, right]]) => [name, n, right / n]));
  rows("experts", ["expert", "weight"], (found.weights || []).map((w, i) => [(found.experts || [])[i], w]).sort((a, b) => b[1] - a[1]).slice(0, 12));
  rows("relevance", ["column", "share"], (found.relevance || []).map((share, i) => [Object.keys(found.columns || {})[i], share]));
  rows("challenger", ["", "learner", ...Object.keys(found.metrics)], found.challenger ? [
    ["champion", found.learner, ...Object.values(found.metrics)],
    [found.challenger.status, found.challenger.learner, ...Object.values(found.challenger.metrics)]] : []);
  const list = $("notices");
  list.replaceChildren();
  const lines = [
    ...found.drifts.map((d) => [d.position, `drift at ${short(d.position)}: ${short(d.before)} to ${short(d.after)}`]),
    ...found.alarms.map((a) => [a.position, `alarm at ${short(a.position)}, score ${short(a.score)}: ` +
      (a.reasons.map((r) => `${r.column} = ${typeof r.value === "number" ? short(r.value) : r.value}`).join(", ") || "no single column")]),
  ].sort((a, b) => b[0] - a[0]).slice(0, 40);
  for (const [, text] of lines) { const item = document.createElement("li"); item.textContent = text; list.append(item); }
  document.body.dataset.position = found.position;
}

async function turn() {
  try {
    const { models } = await ask("/v1/models");
    const select = $("model");
    const names = models.map((model) => model.name);
    if (names.join() !== [...select.options].map((option) => option.value).join()) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
      if (names.includes(shown)) select.value = shown;
    }
    shown = select.value;
    if (shown) drawAll(await ask(`/v1/models/${encodeURIComponent(shown)}/curves`));
    $("state").textContent = shown ? "live" : "no model yet";
  } catch (error) {
    $("state").textContent = error.message;
  }
  setTimeout(turn, document.hidden ? 5000 : 1000);
}

$("model").addEventListener("change", () => { shown = $("model").value; });
$("token").addEventListener("change", () => { token = $("token").value; sessionStorage.setItem("token", token); $("token-label").hidden = true; });
addEventListener("resize", () => { for (const [id, plot] of Object.entries(plots)) plot.setSize({ width: $(id).clientWidth, height: 170 }); });
turn();
