// Pictures: a decision surface with the stored points on it, and curves over time. Knows nothing of controls.

import { VIEW } from "./streams.js";
import { IMAGES } from "./digits.js";

export const COLUMNS = 200, ROWS = 150;
// Classes: colours that are told apart with any sight, and a shape for each class.
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#aa3377"];
const RGB = COLOURS.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
// Learners: other colours than classes, and a dash for each.
const LINES = { light: ["#1d252d", "#7c3aed", "#a16207", "#be185d"], dark: ["#e6ebf0", "#b794f6", "#ecc94b", "#f687b3"] };
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
export const lineOf = (which, dark) => ({ colour: LINES[dark ? "dark" : "light"][which], dash: DASHES[which] });
const ENTER = 500, LEAVE = 900; // milliseconds that a new point glows and a lost one is remembered

export class Surface {
  #small = new OffscreenCanvas(COLUMNS, ROWS);
  #pixels = new ImageData(COLUMNS, ROWS);
  #border = new Path2D();
  #drawn = null; // what the surface was computed for
  #stored = { seen: -1, points: [] };
  #known = new Map(); // stored points by position in the stream: {x, y, label, since}
  #gone = [];
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }
  forget() {
    this.#known.clear();
    this.#gone = [];
    this.#drawn = null;
    this.#stored.seen = -1;
  }

  // model: null while there is none. recent: the last events. eventAt: an event by its position in the stream. fresh: whether the
  // surface may be computed in this frame; else the last one is shown. still: without rings that move.
  draw(model, { recent, eventAt, dark, now, fresh, still }) {
    const { canvas, context } = this, ratio = Math.min(devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round((canvas.clientWidth * ratio * ROWS) / COLUMNS);
    if (canvas.width !== width || canvas.height !== height) (canvas.width = width), (canvas.height = height);
    context.fillStyle = dark ? "#15191e" : "#ffffff";
    context.fillRect(0, 0, width, height);
    if (model?.seen) {
      const wanted = `${model.seen} ${dark} ${width}`;
      if (this.#drawn === null || (fresh && this.#drawn !== wanted)) {
        this.#compute(model, dark, width, height);
        this.#drawn = wanted;
      }
      context.imageSmoothingQuality = "high";
      context.drawImage(this.#small, 0, 0, width, height);
      context.strokeStyle = dark ? "#eef2f5" : "#1d252d";
      context.lineWidth = 1.6 * ratio;
      context.lineCap = "round";
      context.stroke(this.#border);
    }
    const place = (x, y) => [((x - VIEW.left) / (VIEW.right - VIEW.left)) * width, ((VIEW.top - y) / (VIEW.top - VIEW.bottom)) * height];
    const unit = width / 360;
    recent.forEach((event, at) => {
      context.globalAlpha = 0.15 + (0.6 * at) / recent.length;
      context.fillStyle = COLOURS[event.label];
      const [x, y] = place(event.x, event.y);
      context.beginPath();
      context.arc(x, y, 1.7 * unit, 0, 7);
      context.fill();
    });
    context.globalAlpha = 1;
    if (model?.seen) this.#points(model, eventAt, place, unit, dark, now, still);
  }

  #compute(model, dark, width, height) {
    const { scores, outputs, arrived } = model.grid({ ...VIEW, columns: COLUMNS, rows: ROWS });
    const data = this.#pixels.data, ground = dark ? [21, 25, 30] : [255, 255, 255], most = dark ? 0.55 : 0.42;
    const own = new Uint8Array(COLUMNS * ROWS);
    for (let p = 0; p < COLUMNS * ROWS; p++) {
      let best = 0, margin;
      if (outputs === 1) {
        best = scores[p] >= 0 && arrived.length > 1 ? 1 : 0;
        margin = Math.abs(scores[p]);
      } else {
        let second = -Infinity;
        for (let o = 1; o < outputs; o++) if (scores[p * outputs + o] > scores[p * outputs + best]) best = o;
        for (let o = 0; o < outputs; o++) if (o !== best) second = Math.max(second, scores[p * outputs + o]);
        margin = scores[p * outputs + best] - second;
      }
      own[p] = best;
      const share = most * (0.18 + 0.82 * Math.min(margin, 1)), colour = RGB[arrived[best]];
      for (let c = 0; c < 3; c++) data[4 * p + c] = ground[c] + share * (colour[c] - ground[c]);
      data[4 * p + 3] = 255;
    }
    this.#small.getContext("2d").putImageData(this.#pixels, 0, 0);
    this.#border = borders(own, (p, a, b) => (outputs === 1 ? (a === 1 ? 2 : -2) * scores[p] : scores[p * outputs + a] - scores[p * outputs + b]), width, height);
  }

  #points(model, eventAt, place, unit, dark, now, still) {
    const { context } = this, present = new Map();
    if (this.#stored.seen !== model.seen) this.#stored = { seen: model.seen, points: model.stored };
    const stored = this.#stored.points;
    let largest = 1e-12;
    for (const one of stored) largest = Math.max(largest, (one.weight = Math.max(...one.coefficients.map(Math.abs))));
    for (const { point, id, weight } of stored) {
      const event = eventAt(id), since = this.#known.get(id)?.since ?? now;
      present.set(id, { x: point[0], y: point[1], label: event.label, since });
      const [x, y] = place(point[0], point[1]), size = (2.6 + 2.6 * (weight / largest)) * unit;
      if (event.image !== undefined) digit(context, event.image, x, y, 2.2 * size, COLOURS[event.label], dark);
      else shape(context, event.label, x, y, size, COLOURS[event.label], dark ? "#f4f6f8" : "#101418", 0.9 * unit);
      const age = (now - since) / ENTER;
      if (age < 1 && !still) ring(context, x, y, size + (1 - age) * 9 * unit, dark ? "#ffffff" : "#000000", 0.7 * (1 - age), unit);
    }
    for (const [id, point] of this.#known) if (!present.has(id) && !still) this.#gone.push({ ...point, at: now });
    this.#gone = this.#gone.filter(({ at }) => now - at < LEAVE);
    for (const { x, y, at } of this.#gone) {
      const share = (now - at) / LEAVE, [px, py] = place(x, y);
      ring(context, px, py, (5 + 8 * share) * unit, dark ? "#ff8f66" : "#b3261e", 0.8 * (1 - share), unit);
    }
    this.#known = present;
  }
}

// Where neighbouring places belong to different classes: in each cell the crossings of its sides, joined. ahead(p, a, b): by how much
// class a leads class b at place p.
function borders(own, ahead, width, height) {
  const path = new Path2D(), sx = width / (COLUMNS - 1), sy = height / (ROWS - 1);
  for (let j = 0; j < ROWS - 1; j++)
    for (let i = 0, p = j * COLUMNS; i < COLUMNS - 1; i++, p++) {
      const corners = [p, p + 1, p + COLUMNS + 1, p + COLUMNS];
      if (corners.every((corner) => own[corner] === own[p])) continue;
      const crossings = [];
      for (let side = 0; side < 4; side++) {
        const from = corners[side], to = corners[(side + 1) % 4], a = own[from], b = own[to];
        if (a === b) continue;
        const before = ahead(from, a, b), after = ahead(to, b, a), share = before + after > 0 ? before / (before + after) : 0.5;
        const [x, y] = [i + [0, 1, 1, 0][side], j + [0, 0, 1, 1][side]], [dx, dy] = [[1, 0], [0, 1], [-1, 0], [0, -1]][side];
        crossings.push([(x + share * dx) * sx, (y + share * dy) * sy]);
      }
      if (crossings.length === 2) path.moveTo(...crossings[0]), path.lineTo(...crossings[1]);
      else for (const crossing of crossings) path.moveTo((i + 0.5) * sx, (j + 0.5) * sy), path.lineTo(...crossing);
    }
  return path;
}
function ring(context, x, y, radius, colour, alpha, width) {
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.lineWidth = 1.2 * width;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.stroke();
  context.globalAlpha = 1;
}
function shape(context, label, x, y, size, fill, edge, width) {
  context.fillStyle = fill;
  context.strokeStyle = edge;
  context.lineWidth = width;
  context.beginPath();
  if (label === 0) context.arc(x, y, size, 0, 7);
  else if (label === 1) context.rect(x - 0.9 * size, y - 0.9 * size, 1.8 * size, 1.8 * size);
  else for (let corner = 0, corners = label + 1; corner < corners; corner++) {
    const angle = (2 * Math.PI * corner) / corners - Math.PI / 2;
    context.lineTo(x + 1.25 * size * Math.cos(angle), y + 1.25 * size * Math.sin(angle));
  }
  context.closePath();
  context.fill();
  context.stroke();
}
const drawn = new Map(); // images of digits, by number and colour
function digit(context, image, x, y, size, colour, dark) {
  const key = `${image}${colour}${dark}`;
  if (!drawn.has(key)) {
    const small = new OffscreenCanvas(8, 8), pixels = new ImageData(8, 8);
    const ground = dark ? [30, 34, 40] : [255, 255, 255], ink = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    for (let p = 0; p < 64; p++) {
      const share = parseInt(IMAGES[64 * image + p], 16) / 15;
      for (let c = 0; c < 3; c++) pixels.data[4 * p + c] = ground[c] + share * (ink[c] - ground[c]);
      pixels.data[4 * p + 3] = 70 + 185 * share;
    }
    small.getContext("2d").putImageData(pixels, 0, 0);
    drawn.set(key, small);
  }
  context.drawImage(drawn.get(key), x - size, y - size, 2 * size, 2 * size);
}

// Curves over events, one for each learner. lines: [{name, points: [{t, value}, ...]}, ...]; changes: [[event, what happens], ...].
export function curves(canvas, lines, changes, { title, format, dark, least, from }) {
  const context = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2);
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) (canvas.width = width), (canvas.height = height);
  context.clearRect(0, 0, width, height);
  const ink = dark ? "#c9d1d9" : "#333c46", faint = dark ? "#39424d" : "#dde2e7";
  const box = { left: 50 * ratio, top: 46 * ratio, right: width - 14 * ratio, bottom: height - 22 * ratio };
  const font = (weight) => (context.font = `${weight} ${12 * ratio}px system-ui, sans-serif`);
  const end = Math.max(200, ...lines.flatMap(({ points }) => (points.length ? [points.at(-1).t] : [])));
  // The first events, when all are wrong, do not set the scale.
  const most = roundUp(Math.max(least, ...lines.flatMap(({ points }) => points.filter(({ t }) => t >= from).map(({ value }) => value))));
  const across = (t) => box.left + (t / end) * (box.right - box.left), up = (value) => box.bottom - (value / most) * (box.bottom - box.top);
  context.fillStyle = ink;
  context.textAlign = "left";
  font(600);
  context.fillText(title, 12 * ratio, 18 * ratio);
  font(400);
  let x = 12 * ratio;
  lines.forEach(({ name }, which) => {
    const { colour, dash } = lineOf(which, dark);
    line(context, [[x, 31 * ratio], [x + 22 * ratio, 31 * ratio]], colour, 2.5 * ratio, dash.map((n) => n * ratio));
    context.fillText(name, x + 27 * ratio, 35 * ratio);
    x += 40 * ratio + context.measureText(name).width;
  });
  for (const share of [0, 0.5, 1]) {
    line(context, [[box.left, up(share * most)], [box.right, up(share * most)]], faint, ratio);
    context.textAlign = "right";
    context.fillText(format(share * most), box.left - 6 * ratio, up(share * most) + 4 * ratio);
  }
  context.textAlign = "right";
  context.fillText(`${end.toLocaleString("en")} events`, box.right, 18 * ratio);
  context.textAlign = "left";
  let free = box.left;
  for (const [t, what] of changes) {
    if (t > end) continue;
    const at = across(t), room = context.measureText(what).width, start = Math.min(at + 4 * ratio, box.right - room);
    line(context, [[at, box.top], [at, box.bottom]], ink, ratio, [2 * ratio, 4 * ratio]);
    if (start < free) continue;
    context.fillText(what, start, box.bottom + 16 * ratio);
    free = start + room + 8 * ratio;
  }
  context.save();
  context.beginPath();
  context.rect(box.left, box.top - 2 * ratio, box.right - box.left, box.bottom - box.top + 4 * ratio);
  context.clip();
  lines.forEach(({ points }, which) => {
    const { colour, dash } = lineOf(which, dark);
    line(context, points.map(({ t, value }) => [across(t), up(value)]), colour, 2 * ratio, dash.map((n) => n * ratio));
  });
  context.restore();
}
function line(context, places, colour, width, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  for (const place of places) context.lineTo(...place);
  context.stroke();
  context.setLineDash([]);
}
// The next number of 1, 2, 4, 6, 10, 20, 40 ...
function roundUp(value) {
  const tens = 10 ** Math.floor(Math.log10(value));
  return tens * [1, 2, 4, 6, 10].find((step) => step * tens >= value * 0.999);
}
