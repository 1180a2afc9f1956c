"use strict";
// Signals: prediction and bounds over one axis, with direction and score below it.

class SignalView {
  constructor(meta, slices, theme) {
    this.meta = meta;
    this.slices = slices;
    this.theme = theme;
    this.slice = null;
    this.apart = meta.spacing?.[0] ?? 1;
    this.cursor = meta.columns >> 1;
    this.waiting = false;
    this.pixels = Array.from({ length: meta.columns }, (_, k) => k);
    this.xs = this.pixels.map((k) => (k + meta.origin[1]) * this.apart);
    this.all = [this.xs[0], this.xs.at(-1) > this.xs[0] ? this.xs.at(-1) : this.xs[0] + 1];
    this.domain = this.all;
    this.slicing = new SliceControl(meta, "Signal", (i, way) => this.go(i, way).catch(lost));
    const words = { one: "signal", many: "signals", things: "samples", mark: "Mark" };
    this.flags = new FlagControl(meta, words, () => this.take(this.slice));
    this.readout = new Readout(meta);
    for (const id of ["profile", "window-section", "tool-section", "panel-section", "panels"]) byId(id).hidden = true;
    byId("signal").hidden = false;
    fillLegend(byId("signal-legend"), meta.channels);
    this.canvas = make("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Prediction and bounds of the signal; arrow keys move the pointer");
    const stage = make("div", { className: "plot stage-1d", tabIndex: 0 }, this.canvas);
    byId("signal-stage").replaceChildren(stage);
    listen(stage, () => "move", {
      hover: (at) => this.point(at.x),
      drag: (kind, dx) => this.move(-dx),
      zoom: (at, ratio) => this.zoom(at.x, ratio),
      scroll: (steps, at) => this.zoom(at.x, 0.8 ** steps),
      enlarge: () => this.look(this.all),
    });
  }

  async go(i, way = 1) {
    const here = this.slices.peek(i);
    const slice = here ?? (await this.slices.get(i));
    if (i !== this.slicing.value) return; // the user has gone on
    this.seen = i;
    this.take(slice);
    this.slices.prepare(i, way).catch(lost);
  }

  take(slice) {
    this.slice = slice;
    this.data = bandAt(slice, this.pixels, this.meta, this.flags.shown.checked ? this.flags.level : null);
    this.data.x = this.xs;
    this.need();
  }

  point(x) {
    if (!this.axes) return;
    this.cursor = clamp(Math.round((this.position(x) - this.xs[0]) / this.apart), 0, this.meta.columns - 1);
    this.need();
  }

  /** Where a place of the screen lies on the axis, even before it is drawn anew. */
  position(x) {
    const { left, right } = this.axes.area;
    const [first, last] = this.domain;
    return first + ((x - left) / (right - left)) * (last - first);
  }

  move(dx) {
    const by = this.position(dx) - this.position(0);
    const [first, last] = this.domain;
    const kept = clamp(by, this.all[0] - first, this.all[1] - last);
    this.look([first + kept, last + kept]);
  }

  zoom(x, ratio) {
    const at = this.position(x);
    const [first, last] = this.domain;
    const whole = this.all[1] - this.all[0];
    const width = clamp((last - first) / ratio, Math.min(whole, 4 * this.apart), whole);
    const start = clamp(at - ((at - first) / (last - first)) * width, this.all[0], this.all[1] - width);
    this.look([start, start + width]);
  }

  look(domain) {
    this.domain = domain;
    this.need();
  }

  resize() {
    this.need();
  }

  need() {
    if (!this.waiting) requestAnimationFrame(() => this.draw());
    this.waiting = true;
  }

  draw() {
    this.waiting = false;
    if (!this.slice) return;
    const { meta, slice, data } = this;
    const first = Math.max(0, Math.floor((this.domain[0] - this.xs[0]) / this.apart));
    const last = Math.min(meta.columns - 1, Math.ceil((this.domain[1] - this.xs[0]) / this.apart));
    const { context, width, height } = fresh(this.canvas);
    const ink = inks();
    const [left, right] = [60, width - 12];
    const scoreHeight = clamp(height * 0.2, 60, 130);
    const main = { left, right, top: 16, bottom: height - scoreHeight - 66 };
    const lists = [data.lower, data.upper, data.target ?? data.point, data.input ?? data.point];
    this.axes = axesOver(main, this.domain, rangeOf(lists, first, last));
    drawAxes(context, this.axes, ink, { yName: meta.unit, xNumbers: false, yTicks: 6 });
    drawBand(context, this.axes, data, ink, { first, last, cursor: this.cursor });
    const strip = { left, right, top: main.bottom + 8, bottom: main.bottom + 20 };
    this.drawDirection(context, strip, data.direction, first, last);
    const score = { left, right, top: main.bottom + 44, bottom: height - 24 };
    const high = Math.max(meta.ranges.score[1], rangeOf([data.score], first, last)[1]);
    this.drawScore(context, axesOver(score, this.domain, [0, high * 1.1]), data, ink, first, last);
    this.flags.count(slice);
    byId("inside").textContent = `Targets inside the bounds, this signal: ${percent(slice.inside)}`;
    byId("inside").hidden = !slice.channels.target;
    this.readout.show(slice, this.cursor, `sample ${this.cursor + meta.origin[1]}`);
    document.documentElement.dataset.drawn = this.seen;
  }

  /** A strip of colour: blue where the gap below is the larger, orange where that above is. */
  drawDirection(context, area, direction, first, last) {
    const table = DIVERGING[this.theme()];
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText("direction", area.left - 6, (area.top + area.bottom) / 2);
    context.textBaseline = "top";
    const end = context.measureText("wider above").width + 24;
    this.drawKey(context, area.right - end, area.bottom + 3, table[0], "wider below");
    this.drawKey(context, area.right, area.bottom + 3, table[255], "wider above");
    inside(context, area, () => {
      for (let k = first; k <= last; k++) {
        if (!Number.isFinite(direction[k])) continue;
        context.fillStyle = css(table[Math.round(127.5 * (direction[k] + 1))]);
        const x = this.axes.x(this.xs[k] - this.apart / 2);
        context.fillRect(x, area.top, this.axes.x(this.xs[k] + this.apart / 2) - x + 0.5, area.bottom - area.top);
      }
    });
  }

  /** A word with its colour before it, ending at x. */
  drawKey(context, x, y, colour, word) {
    context.fillText(word, x, y);
    context.save();
    context.fillStyle = css(colour);
    context.fillRect(x - context.measureText(word).width - 13, y + 1, 9, 9);
    context.restore();
  }

  drawScore(context, axes, data, ink, first, last) {
    const spacing = this.meta.spacing;
    drawAxes(context, axes, ink, { xName: spacing ? "mm" : "sample", yName: "score", yTicks: 2 });
    inside(context, axes.area, () => {
      drawLine(context, axes, this.xs, data.score, first, last, ink.score, 1.5);
      if (!data.flagged) return;
      context.strokeStyle = ink.flag;
      context.setLineDash([4, 3]);
      const y = Math.round(axes.y(this.flags.threshold)) + 0.5;
      stroke(context, [[axes.area.left, y], [axes.area.right, y]]);
      context.setLineDash([]);
    });
  }

  walk(by) {
    this.cursor = clamp(this.cursor + by, 0, this.meta.columns - 1);
    this.draw();
    this.readout.speak();
  }

  get keys() {
    const middle = () => (this.axes.area.left + this.axes.area.right) / 2;
    return [
      { keys: ["PageDown", "."], shown: "Page ↓  .", does: "next signal", run: () => this.slicing.step(1) },
      { keys: ["PageUp", ","], shown: "Page ↑  ,", does: "signal before", run: () => this.slicing.step(-1) },
      { keys: ["Home", "End"], shown: "Home  End", does: "first, last signal",
        run: (event) => this.slicing.set(event.key === "Home" ? 0 : this.meta.slices - 1) },
      { keys: ["ArrowLeft", "ArrowRight"], shown: "←  →", does: "move the pointer (Shift: by 10)",
        run: (event) => this.walk((event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1)) },
      { keys: ["+", "=", "-"], shown: "+  −", does: "zoom in, out",
        run: (event) => this.zoom(middle(), event.key === "-" ? 1 / 1.5 : 1.5) },
      { keys: ["0"], shown: "0", does: "show all", run: () => this.look(this.all) },
      { keys: ["f"], shown: "f", does: "marks of what is flagged, on or off", run: () => this.flags.toggle() },
      { keys: ["t", "T"], shown: "t  Shift t", does: "lower, higher threshold",
        run: (event) => this.flags.set(this.flags.level + (event.key === "t" ? -500 : 500)) },
    ];
  }

  get mouse() {
    return [
      ["wheel, pinch", "zoom"],
      ["drag", "move"],
      ["double click", "show all"],
    ];
  }
}
