"use strict";
// Controls that images and signals share: which slice, the threshold, the numbers at the pointer.

const byId = (id) => document.getElementById(id);

class SliceControl {
  constructor(meta, word, onchange) {
    this.meta = meta;
    this.word = word;
    this.onchange = onchange;
    this.slider = byId("slice");
    this.slider.max = meta.slices - 1;
    byId("slicebar").hidden = meta.slices < 2;
    byId("slice-word").textContent = word;
    this.slider.oninput = () => this.set(Number(this.slider.value));
    this.value = 0;
    this.label();
  }

  step(by) {
    this.set(this.value + by);
  }

  set(value) {
    const next = clamp(value, 0, this.meta.slices - 1);
    if (next === this.value) return;
    const way = Math.sign(next - this.value);
    this.value = next;
    this.slider.value = next;
    this.label();
    this.onchange(next, way);
  }

  label() {
    const { numbers, leading, slices } = this.meta;
    const number = numbers ? numbers[this.value] : this.value;
    let text = numbers ? `number ${number} (${this.value + 1} of ${slices})` : `${number + 1} of ${slices}`;
    if (!numbers && leading.length > 1 && leading.some((n, k) => k > 0 && n > 1)) text += ` [${this.index()}]`;
    byId("slice-number").textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  /** The place of the slice along each leading axis, from 0 as in the arrays. */
  index() {
    let rest = this.value;
    return this.meta.leading.toReversed().map((n) => {
      const place = rest % n;
      rest = Math.floor(rest / n);
      return place;
    }).reverse().join(", ");
  }
}

/** The threshold above which components are flagged; always one of the levels, so that shares are exact. */
class FlagControl {
  constructor(meta, { one, many, things, mark }, onchange) {
    this.meta = meta;
    this.onchange = onchange;
    this.total = meta.slices * meta.rows * meta.columns;
    this.slider = byId("threshold");
    this.number = byId("threshold-number");
    this.shown = byId("flags");
    this.shown.checked = true;
    this.sums = null;
    byId("threshold-word").textContent = `Flag ${things} ${meta.scoreIsWidth ? "wider than" : "with a score above"}`;
    byId("threshold-unit").textContent = meta.unit;
    byId("flags-word").textContent = mark;
    byId("share-slice-word").textContent = `This ${one}`;
    byId("share-all-word").textContent = `All ${many}`;
    byId("share-all-word").hidden = byId("share-all").hidden = meta.slices < 2;
    byId("share-all").textContent = "…";
    this.slider.oninput = () => this.set(Number(this.slider.value));
    this.number.onchange = () => this.set(levelOf(Number(this.number.value), meta.scoreTop));
    this.shown.onchange = () => this.onchange();
    this.level = levelOf(meta.ranges.flag[0], meta.scoreTop);
    this.label();
  }

  get threshold() {
    return scoreOf(this.level, this.meta.scoreTop);
  }

  set(level) {
    this.level = clamp(Math.round(level), 0, LAST);
    this.label();
    this.onchange();
  }

  toggle() {
    this.shown.click();
  }

  /** Take how many scores of all slices have each level. */
  take(counts) {
    this.sums = above(counts);
    this.label();
  }

  label() {
    this.slider.value = this.level;
    this.number.value = Number(this.threshold.toPrecision(4));
    this.slider.setAttribute("aria-valuetext", `${brief(this.threshold)} ${this.meta.unit}`);
    if (this.sums) byId("share-all").textContent = percent(this.sums[this.level] / this.total);
  }

  /** Say how much of a slice is flagged. */
  count(slice) {
    const share = countAbove(slice.channels.score, this.level) / slice.channels.score.length;
    byId("share-slice").textContent = percent(share);
    byId("share-slice").dataset.share = share;
  }
}

const READOUT = [
  ["point", "Prediction"],
  ["lower", "Lower bound"],
  ["upper", "Upper bound"],
  ["score", "Score"],
  ["direction", "Direction"],
  ["target", "Target"],
  ["error", "Error"],
  ["input", "Input"],
];

class Readout {
  constructor(meta) {
    this.meta = meta;
    this.cells = {};
    const known = meta.channels.includes("target") ? [...meta.channels, "error"] : meta.channels;
    const rows = READOUT.filter(([name]) => known.includes(name)).map(([name, word]) => {
      const title = name === "score" && meta.scoreIsWidth ? "Score (width)" : word;
      this.cells[name] = make("td", {}, "–");
      this.cells[name].dataset.part = name;
      return make("tr", {}, make("th", { scope: "row" }, title), this.cells[name]);
    });
    byId("readout").tBodies[0].replaceChildren(...rows);
    byId("where").textContent = "";
  }

  show(slice, pixel, where) {
    byId("where").textContent = where;
    const values = valuesAt(slice, pixel, this.meta);
    for (const [name, cell] of Object.entries(this.cells)) cell.textContent = this.text(name, values, slice);
    const missed = values.target < values.lower || values.target > values.upper;
    this.cells.target?.classList.toggle("missed", missed);
    if (missed) this.cells.target.textContent += " outside";
  }

  text(name, values, slice) {
    const value = values[name];
    if (!Number.isFinite(value)) return "–";
    if (name === "direction") return `${leaning(value)} (${show(value, 0.01)})`;
    const unit = this.meta.unit && name !== "input" ? ` ${this.meta.unit}` : "";
    if (name === "score") return brief(value) + unit;
    return show(value, gridOf(slice, name)[1]) + unit;
  }

  /** Let a screen reader say it, after a move by key. */
  speak() {
    const words = Object.entries(this.cells).map(([name, cell]) => `${name} ${cell.textContent}`);
    byId("spoken").textContent = `${byId("where").textContent}: ${words.join(", ")}`;
  }
}

function leaning(direction) {
  if (Math.abs(direction) < 0.005) return "neither";
  return direction > 0 ? "wider above" : "wider below";
}
