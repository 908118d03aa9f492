// Pictures: a decision surface with the stored points on it, and curves over time. Knows nothing of controls.

import { VIEW } from "./streams.js";
import { IMAGES } from "./digits.js";

export const COLUMNS = 200, ROWS = 150;
// Okabe and Ito: told apart with any sight; each class also has a shape of its own.
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
export const CURVES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const RGB = COLOURS.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const ENTER = 500, LEAVE = 900; // milliseconds that a new point glows and a lost one is remembered

export class Surface {
  #small = new OffscreenCanvas(COLUMNS, ROWS);
  #pixels = new ImageData(COLUMNS, ROWS);
  #known = new Map(); // stored points by position in the stream: {x, y, label, since}
  #gone = [];
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }
  forget() {
    this.#known.clear();
    this.#gone = [];
  }

  // model: null while there is none. recent: the last events. labelOf: the class of a stored point by its position in the stream.
  draw(model, recent, eventAt, dark, now) {
    const { canvas, context } = this, ratio = Math.min(devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round((canvas.clientWidth * ratio * ROWS) / COLUMNS);
    if (canvas.width !== width || canvas.height !== height) (canvas.width = width), (canvas.height = height);
    context.fillStyle = dark ? "#15191e" : "#ffffff";
    context.fillRect(0, 0, width, height);
    if (model?.seen) this.#paint(model, dark);
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
    if (model?.seen) this.#points(model, eventAt, place, unit, dark, now);
  }

  #paint(model, dark) {
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
    const line = dark ? 235 : 20; // the border between classes
    for (let j = 1; j < ROWS; j++)
      for (let i = 1, p = j * COLUMNS + 1; i < COLUMNS; i++, p++)
        if (own[p] !== own[p - 1] || own[p] !== own[p - COLUMNS]) data[4 * p] = data[4 * p + 1] = data[4 * p + 2] = line;
    this.#small.getContext("2d").putImageData(this.#pixels, 0, 0);
    this.context.imageSmoothingQuality = "high";
    this.context.drawImage(this.#small, 0, 0, this.canvas.width, this.canvas.height);
  }

  #points(model, eventAt, place, unit, dark, now) {
    const { context } = this, present = new Map();
    let largest = 1e-12;
    const stored = model.stored;
    for (const one of stored) largest = Math.max(largest, (one.weight = Math.max(...one.coefficients.map(Math.abs))));
    for (const { point, id, weight } of stored) {
      const event = eventAt(id), since = this.#known.get(id)?.since ?? now;
      present.set(id, { x: point[0], y: point[1], label: event.label, since });
      const [x, y] = place(point[0], point[1]), size = (2.6 + 2.6 * (weight / largest)) * unit;
      if (event.image !== undefined) digit(context, event.image, x, y, 2.2 * size, COLOURS[event.label], dark);
      else shape(context, event.label, x, y, size, COLOURS[event.label], dark ? "#f4f6f8" : "#101418", 0.9 * unit);
      const age = (now - since) / ENTER;
      if (age < 1) ring(context, x, y, size + (1 - age) * 9 * unit, dark ? "#ffffff" : "#000000", 0.7 * (1 - age), unit);
    }
    for (const [id, point] of this.#known) if (!present.has(id)) this.#gone.push({ ...point, at: now });
    this.#gone = this.#gone.filter(({ at }) => now - at < LEAVE);
    for (const { x, y, at } of this.#gone) {
      const share = (now - at) / LEAVE, [px, py] = place(x, y);
      ring(context, px, py, (5 + 8 * share) * unit, dark ? "#ff8f66" : "#b3261e", 0.8 * (1 - share), unit);
    }
    this.#known = present;
  }
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

// Curves over events, one for each panel. series: [[{t, value}, ...], ...]
export function curves(canvas, series, { title, format, dark, least }) {
  const context = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2);
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) (canvas.width = width), (canvas.height = height);
  context.clearRect(0, 0, width, height);
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  const ink = dark ? "#c9d1d9" : "#333c46", box = { left: 54 * ratio, top: 22 * ratio, right: width - 8 * ratio, bottom: height - 18 * ratio };
  const end = Math.max(200, ...series.flatMap((line) => (line.length ? [line.at(-1).t] : [])));
  const most = Math.max(least, ...series.flatMap((line) => line.map(({ value }) => value)));
  context.fillStyle = ink;
  context.textAlign = "left";
  context.fillText(title, 4 * ratio, 13 * ratio);
  context.strokeStyle = dark ? "#39424d" : "#d5dbe1";
  context.lineWidth = ratio;
  for (const share of [0, 0.5, 1]) {
    const y = box.bottom - share * (box.bottom - box.top);
    context.beginPath();
    context.moveTo(box.left, y);
    context.lineTo(box.right, y);
    context.stroke();
    context.textAlign = "right";
    context.fillText(format(share * most), box.left - 5 * ratio, y + 4 * ratio);
  }
  context.fillText(`${end.toLocaleString("en")} events`, box.right, height - 4 * ratio);
  series.forEach((line, which) => {
    context.strokeStyle = CURVES[which];
    context.lineWidth = 2 * ratio;
    context.setLineDash([[], [7, 3], [2, 3], [9, 3, 2, 3]][which].map((n) => n * ratio));
    context.beginPath();
    for (const { t, value } of line)
      context.lineTo(box.left + (t / end) * (box.right - box.left), box.bottom - (value / most) * (box.bottom - box.top));
    context.stroke();
  });
  context.setLineDash([]);
}
