"use strict";
// Panels: one picture of the slice each, with its colour bar; all show the same place.

const PANELS = [
  { name: "point", title: "Prediction", scale: "value" },
  { name: "lower", title: "Lower bound", scale: "value" },
  { name: "upper", title: "Upper bound", scale: "value" },
  { name: "score", title: "Score", scale: "score" },
  { name: "direction", title: "Direction", scale: "direction" },
  { name: "error", title: "Error: target − prediction", scale: "error" },
  { name: "target", title: "Target", scale: "value" },
  { name: "input", title: "Input", scale: "input" },
];

class Panel {
  constructor(kind, meta) {
    this.kind = kind;
    this.meta = meta;
    this.bitmap = make("canvas", { width: meta.columns, height: meta.rows });
    this.image = this.bitmap.getContext("2d").createImageData(meta.columns, meta.rows);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.base = make("canvas");
    this.over = make("canvas");
    this.ramp = make("canvas", { width: 1, height: 256 });
    this.high = make("span", { className: "end" });
    this.low = make("span", { className: "end" });
    const bar = make("div", { className: "bar" }, this.high, this.ramp, this.low);
    const title = make("figcaption", {}, kind.title);
    this.stage = make("div", { className: "stage", tabIndex: 0 }, this.base, this.over, title, bar, ...this.letters());
    this.stage.setAttribute("role", "img");
    this.stage.setAttribute("aria-label", `${kind.title}; arrow keys move the pointer, Enter enlarges`);
    this.element = make("figure", { className: "panel" }, this.stage);
    this.element.dataset.panel = kind.name;
  }

  /** The sides of the body, where they are known. */
  letters() {
    const places = ["side-top", "side-bottom", "side-left", "side-right"];
    return [...this.meta.sides].map((letter, k) => make("span", { className: `letter ${places[k]}` }, letter));
  }

  resize() {
    const { width, height } = this.stage.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.size = { width, height };
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.max(1, Math.round(width * this.ratio));
      canvas.height = Math.max(1, Math.round(height * this.ratio));
    }
  }

  /** Colour the levels of a slice. */
  paint(slice, ranges, theme) {
    const { name, scale } = this.kind;
    const table = this.table(theme);
    if (scale === "error") {
      const { target, point } = slice.channels;
      paintDifference(target, point, slice.step, ranges.error, table, this.pixels);
    } else if (scale === "score") {
      paint(slice.channels.score, this.scoreColours(ranges.score, table), this.pixels);
    } else {
      const [offset, step] = gridOf(slice, name);
      paint(slice.channels[name], evenColours(offset, step, ranges[scale], table), this.pixels);
    }
    this.bitmap.getContext("2d").putImageData(this.image, 0, 0);
    this.label(ranges[scale], table);
  }

  /** Whether it shows an image as such; outlines would hide the colours of the others. */
  get grey() {
    return this.kind.scale === "value" || this.kind.scale === "input";
  }

  table(theme) {
    if (this.grey) return GREY;
    return this.kind.scale === "score" ? SEQUENTIAL : DIVERGING[theme];
  }

  /** Those of the score are the same for every slice. */
  scoreColours(range, table) {
    if (this.lastHigh !== range[1]) this.lastColours = scoreColours(this.meta.scoreTop, range, table);
    this.lastHigh = range[1];
    return this.lastColours;
  }

  label([low, high], table) {
    const key = `${low} ${high} ${table[128]}`;
    if (key === this.labelled) return;
    this.labelled = key;
    const context = this.ramp.getContext("2d");
    const column = context.createImageData(1, 256);
    new Uint32Array(column.data.buffer).set(table.toReversed());
    context.putImageData(column, 0, 0);
    const unit = this.meta.unit && this.kind.scale !== "input" ? ` ${this.meta.unit}` : "";
    if (this.kind.scale === "direction") {
      for (const [end, side] of [[this.high, "above"], [this.low, "below"]]) {
        end.replaceChildren(make("span", { className: "wider" }, "wider "), side);
      }
    } else {
      this.high.textContent = brief(Number(high.toPrecision(3))) + unit;
      this.low.textContent = brief(Number(low.toPrecision(3)));
    }
  }

  /** Draw the picture where the look wants it, and the outlines over it. */
  place(t, outlines) {
    const context = this.base.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.base.width, this.base.height);
    context.setTransform(t.sx * this.ratio, 0, 0, t.sy * this.ratio, t.tx * this.ratio, t.ty * this.ratio);
    context.imageSmoothingEnabled = t.sx * this.ratio < 1;
    context.drawImage(this.bitmap, 0, 0);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.imageSmoothingEnabled = false;
    if (outlines) context.drawImage(outlines, 0, 0, this.base.width, this.base.height);
  }

  /** Draw the pointer's place and the line of the profile, with rings at its ends if it can be drawn anew. */
  mark(t, cursor, line, rings) {
    const context = this.over.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.size.width, this.size.height);
    const place = ({ x, y }) => [t.tx + (x + 0.5) * t.sx, t.ty + (y + 0.5) * t.sy];
    const [from, to] = [place(line.from), place(line.to)];
    if (rings) {
      doubled(context, 1.5, "#ffd84d", () => stroke(context, [from, to]));
      for (const [x, y] of [from, to]) doubled(context, 1.5, "#ffd84d", () => ring(context, x, y, 4));
    } else {
      context.lineWidth = 1;
      context.strokeStyle = "rgb(255 216 77 / 50%)";
      stroke(context, [from, to]);
    }
    cross(context, ...place(cursor), Math.max(6, t.sx * 0.75));
    if (this.kind.name === "point" && this.meta.spacing) this.ruler(context, t.sx / this.meta.spacing[1]);
  }

  /** A length to compare with, given how many pixels of the screen make a millimetre. */
  ruler(context, perMm) {
    const length = ticks(0, this.size.width / 3 / perMm, 2).at(-1);
    const [x, y] = [10.5, this.size.height - 10.5];
    const ends = [[x, y - 4], [x, y], [x + length * perMm, y], [x + length * perMm, y - 4]];
    doubled(context, 1, "#f2f4f6", () => stroke(context, ends));
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 3;
    context.strokeStyle = "rgb(0 0 0 / 70%)";
    context.strokeText(`${length} mm`, x + 4, y - 5);
    context.fillStyle = "#f2f4f6";
    context.fillText(`${length} mm`, x + 4, y - 5);
  }

}

/** Four arms around a place, which itself stays free. */
function cross(context, x, y, gap) {
  const far = gap + 14;
  const arms = [[-1, 0], [1, 0], [0, -1], [0, 1]].map(([dx, dy]) => [
    [x + dx * gap, y + dy * gap],
    [x + dx * far, y + dy * far],
  ]);
  doubled(context, 1.5, "#ffffff", () => arms.forEach((arm) => stroke(context, arm)));
}

/** Draw a light line on a dark one, so that it shows on any picture. */
function doubled(context, width, colour, draw) {
  context.lineWidth = width + 2;
  context.strokeStyle = "rgb(0 0 0 / 60%)";
  draw();
  context.lineWidth = width;
  context.strokeStyle = colour;
  draw();
}

function ring(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

/**
 * Outline the pixels above a threshold, at the resolution of the page: a light line just inside them and a dark
 * one just outside, one pixel of the page each, at any magnification.
 */
function outline(canvas, levels, threshold, t, image) {
  const { width, height } = canvas;
  const context = canvas.getContext("2d");
  const picture = context.createImageData(width, height);
  const pixels = new Uint32Array(picture.data.buffer);
  const columns = new Int32Array(width + 1);
  for (let x = 0; x <= width; x++) columns[x] = Math.floor((x + 0.5 - t.tx) / t.sx);
  const [light, dark] = [packed(176, 92, 255), ((150 << 24) | 0) >>> 0];
  const flagged = (column, row) =>
    column >= 0 && column < image.columns && row >= 0 && row < image.rows &&
    levels[row * image.columns + column] > threshold;
  for (let y = 0; y < height; y++) {
    const row = Math.floor((y + 0.5 - t.ty) / t.sy);
    const below = Math.floor((y + 1.5 - t.ty) / t.sy);
    if (row >= image.rows || below < 0) continue;
    for (let x = 0; x < width; x++) {
      const here = flagged(columns[x], row);
      if (columns[x + 1] !== columns[x] && flagged(columns[x + 1], row) !== here) {
        pixels[y * width + x] = here ? light : pixels[y * width + x] || dark;
        if (x + 1 < width) pixels[y * width + x + 1] = here ? pixels[y * width + x + 1] || dark : light;
      }
      if (below !== row && flagged(columns[x], below) !== here) {
        pixels[y * width + x] = here ? light : pixels[y * width + x] || dark;
        if (y + 1 < height) pixels[(y + 1) * width + x] = here ? pixels[(y + 1) * width + x] || dark : light;
      }
    }
  }
  context.putImageData(picture, 0, 0);
}
