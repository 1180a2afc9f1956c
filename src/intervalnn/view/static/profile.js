"use strict";
// Profile: prediction and bounds along the row or the column of the pointer, or along a line that was drawn.

class Profile {
  /** @param on Functions point(pixel), when the plot is hovered over, and change(). */
  constructor(meta, on) {
    this.meta = meta;
    this.on = on;
    this.line = null;
    this.plotted = null; // the pixels and axes of what is drawn
    fillLegend(byId("legend"), meta.channels.filter((name) => name !== "input"));
    byId("profile-mode").onchange = () => this.set(this.mode);
    byId("plot").onpointermove = (event) => this.hover(event.offsetX);
    choose("mode", "row");
  }

  get mode() {
    return byId("profile-mode").querySelector(":checked").value;
  }

  get shown() {
    return !byId("profile").hidden;
  }

  set shown(shown) {
    byId("profile").hidden = !shown;
  }

  /** Run along the "row", the "column" or the "line"; the first line lies across the image, to start from. */
  set(mode) {
    const { columns, rows } = this.meta;
    choose("mode", mode);
    if (mode !== "line" || this.line) return this.on.change();
    this.draw({ x: columns * 0.2, y: rows * 0.35 }, { x: columns * 0.8, y: rows * 0.65 });
  }

  /** Run along a line between two places of the image. */
  draw(from, to) {
    const pixel = ({ x, y }) => ({
      x: clamp(Math.floor(x), 0, this.meta.columns - 1),
      y: clamp(Math.floor(y), 0, this.meta.rows - 1),
    });
    this.line = { from: pixel(from), to: pixel(to) };
    choose("mode", "line");
    this.on.change();
  }

  forget() {
    this.line = null;
    this.set("row");
  }

  /** Its two ends, for a pointer. */
  ends({ x, y }) {
    if (this.mode === "row") return { from: { x: 0, y }, to: { x: this.meta.columns - 1, y } };
    if (this.mode === "column") return { from: { x, y: 0 }, to: { x, y: this.meta.rows - 1 } };
    return this.line;
  }

  plot(slice, cursor, threshold) {
    if (!this.shown) return;
    const { columns, spacing, unit } = this.meta;
    const { from, to } = this.ends(cursor);
    const { pixels, distances } = along(from, to, this.meta);
    byId("profile-where").textContent = this.name(cursor, distances.at(-1));
    const data = { ...bandAt(slice, pixels, this.meta, threshold), x: distances, input: null }; // it may have another unit
    const last = distances.length - 1;
    const { context, width, height } = fresh(byId("plot"));
    const area = { left: 52, right: width - 10, top: 16, bottom: height - 22 };
    const range = rangeOf([data.lower, data.upper, data.target ?? data.point], 0, last);
    const axes = axesOver(area, [0, distances[last] || 1], range);
    const ink = inks();
    drawAxes(context, axes, ink, { xName: spacing ? "mm" : "pixels", yName: unit });
    const at = pixels.indexOf(cursor.y * columns + cursor.x);
    drawBand(context, axes, data, ink, { first: 0, last, cursor: at < 0 ? null : at });
    this.plotted = { axes, distances, pixels };
  }

  name(cursor, length) {
    const [row, column] = this.meta.origin;
    if (this.mode === "row") return `row ${cursor.y + row}`;
    if (this.mode === "column") return `column ${cursor.x + column}`;
    const place = ({ x, y }) => `(${x + column}, ${y + row})`;
    return `${place(this.line.from)} to ${place(this.line.to)}, ${brief(length)} ${this.meta.spacing ? "mm" : "pixels"}`;
  }

  hover(x) {
    if (!this.plotted) return;
    const { axes, distances, pixels } = this.plotted;
    const last = distances.length - 1;
    const k = clamp(Math.round((axes.position(x) / (distances[last] || 1)) * last), 0, last);
    this.on.point({ x: pixels[k] % this.meta.columns, y: Math.floor(pixels[k] / this.meta.columns) });
  }
}

/** Check one of some radio buttons. */
function choose(name, value) {
  document.querySelector(`input[name="${name}"][value="${value}"]`).checked = true;
}
