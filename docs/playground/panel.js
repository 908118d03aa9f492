// One learner of the playground: its model, its errors, and its part of the page.

import { ALGORITHMS, BUDGETS, RULES, algorithmOf, composition, ownName, sentenceOf } from "./learners.js";
import { COLOURS, Surface, lineOf } from "./draw.js";
import { VIEW } from "./streams.js";

export const WINDOW = 200; // events over which the error is shown
const SAMPLE = 20; // events between points of the curves
const RECENT = 120; // events that are drawn
const OWN = "own"; // a combination that has no name

// Its element sends "learner" when a choice in it has changed; `restart` then makes the model.
export class Panel {
  constructor(gristmill, { rule, budget, size }) {
    Object.assign(this, { gristmill, rule, budget, size });
    this.element = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    this.surface = new Surface(this.find("canvas"));
    const names = Object.keys(ALGORITHMS).map((name) => [name, name]), titles = (all) => Object.entries(all).map(([name, { title }]) => [name, title]);
    this.fill(".algorithm", [...names, [OWN, ""]], (name) => name !== OWN && Object.assign(this, { rule: ALGORITHMS[name].rule, budget: ALGORITHMS[name].budget }));
    this.fill(".rule", titles(RULES), (name) => (this.rule = name));
    this.fill(".budget", titles(BUDGETS), (name) => (this.budget = name));
    this.find(".size").addEventListener("input", () => {
      this.size = Number(this.find(".size").value);
      this.changed();
    });
  }
  find(name) { return this.element.querySelector(name); }
  changed() { this.element.dispatchEvent(new Event("learner")); }
  fill(name, options, choose) {
    const select = this.find(name);
    for (const [value, title] of options) select.add(new Option(title, value));
    select.addEventListener("change", () => {
      choose(select.value);
      this.changed();
    });
  }

  // A new model, which learns all events so far.
  restart(settings, events) {
    this.model?.free();
    this.model = null;
    this.refused = "";
    this.wrong = 0;
    this.misses = [];
    this.history = [];
    this.surface.forget();
    this.find(`.algorithm [value="${OWN}"]`).textContent = ownName(this);
    this.find(".algorithm").value = algorithmOf(this) ?? OWN;
    this.find(".rule").value = this.rule;
    this.find(".budget").value = this.budget;
    this.find(".size").value = this.size;
    this.find(".of-size output").textContent = this.size;
    this.find(".of-size").hidden = this.budget === "Unbounded";
    this.find(".says").textContent = sentenceOf(this);
    try {
      this.model = this.gristmill.classifier(composition(this, settings));
    } catch (error) {
      this.refused = error.message;
    }
    events.forEach((event, t) => this.learn(event, t));
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

  // which: its place among the learners.
  show(which, { state, dark, still, now, fresh }) {
    const numbers = this.find(".numbers"), swatch = this.find(".swatch"), { colour, dash } = lineOf(which, dark);
    swatch.style.stroke = colour;
    swatch.style.strokeDasharray = dash.join(" ");
    numbers.classList.toggle("refused", Boolean(this.refused));
    numbers.textContent = this.refused ||
      `${(100 * this.error).toFixed(1)}% wrong · ${this.model.size} points · ${(this.model.memoryBytes / 1000).toFixed(1)} kB`;
    const recent = state.events.slice(-RECENT), eventAt = (id) => state.events[id];
    this.surface.draw(this.refused ? null : this.model, { recent, eventAt, dark, now, fresh, still });
    if (this.surface.canvas === document.activeElement) this.cross(state);
  }
  // Where the keyboard draws.
  cross({ cursor, label }) {
    const { context, canvas } = this.surface, x = ((cursor.x - VIEW.left) / (VIEW.right - VIEW.left)) * canvas.width;
    const y = ((VIEW.top - cursor.y) / (VIEW.top - VIEW.bottom)) * canvas.height, arm = canvas.width / 30;
    context.strokeStyle = COLOURS[label];
    context.lineWidth = canvas.width / 160;
    context.beginPath();
    context.moveTo(x - arm, y), context.lineTo(x + arm, y), context.moveTo(x, y - arm), context.lineTo(x, y + arm);
    context.stroke();
  }
}
