"use strict";
// Plots of a prediction with its bounds over one axis: profiles through images, and signals.

/** The colours of the page as it is now. */
function inks() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "dim", "line", "card", "band", "point", "target", "input", "flag", "score"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** A canvas cleared and fitted to its box, with a context that counts in CSS pixels. */
function fresh(canvas) {
  const { width, height } = canvas.parentElement.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height };
}

/** Maps x and y from data to an area of the canvas, and x back. */
function axesOver(area, [x0, x1], [y0, y1]) {
  const kx = (area.right - area.left) / (x1 - x0 || 1);
  const ky = (area.bottom - area.top) / (y1 - y0 || 1);
  return {
    area,
    domain: [x0, x1],
    range: [y0, y1],
    x: (value) => area.left + (value - x0) * kx,
    y: (value) => area.bottom - (value - y0) * ky,
    position: (x) => x0 + (x - area.left) / kx,
  };
}

/** The smallest and largest finite number of some lists between two indices, with a margin. */
function rangeOf(lists, first, last, margin = 0.06) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) {
    for (let k = first; k <= last; k++) {
      if (list[k] < low && list[k] > -Infinity) low = list[k];
      if (list[k] > high && list[k] < Infinity) high = list[k];
    }
  }
  if (low > high) return [0, 1];
  const more = (high - low || Math.abs(high) || 1) * margin;
  return [low - more, high + more];
}

function drawAxes(context, axes, ink, { xName = "", yName = "", xNumbers = true, yTicks = 4 } = {}) {
  const { area, domain, range } = axes;
  context.lineWidth = 1;
  context.strokeStyle = ink.line;
  context.fillStyle = ink.dim;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of ticks(...range, yTicks)) {
    const y = Math.round(axes.y(tick)) + 0.5;
    stroke(context, [[area.left, y], [area.right, y]]);
    context.fillText(brief(tick), area.left - 6, y);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const nameWidth = context.measureText(xName).width;
  for (const tick of xNumbers ? ticks(...domain, (area.right - area.left) / 90) : []) {
    const x = axes.x(tick);
    if (x > area.right - nameWidth - 24) continue;
    stroke(context, [[x, area.bottom], [x, area.bottom + 4]]);
    context.fillText(brief(tick), x, area.bottom + 6);
  }
  context.textAlign = "right";
  if (xNumbers) context.fillText(xName, area.right, area.bottom + 6);
  stroke(context, [[area.left, area.bottom], [area.right, area.bottom]]);
  context.textBaseline = "bottom";
  context.fillText(yName, area.left - 6, area.top - 3);
}

function stroke(context, points) {
  context.beginPath();
  points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

/** Keep what is drawn inside the area. */
function inside(context, area, draw) {
  context.save();
  context.beginPath();
  context.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  context.clip();
  draw();
  context.restore();
}

/** A line through finite numbers, broken at the others. */
function drawLine(context, axes, xs, ys, first, last, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.beginPath();
  let drawing = false;
  for (let k = first; k <= last; k++) {
    const there = Number.isFinite(ys[k]);
    if (there && drawing) context.lineTo(axes.x(xs[k]), axes.y(ys[k]));
    else if (there) context.moveTo(axes.x(xs[k]), axes.y(ys[k]));
    drawing = there;
  }
  context.stroke();
}

/** The area between two lists of numbers. */
function fillBetween(context, axes, xs, lower, upper, first, last, colour) {
  context.fillStyle = colour;
  for (let start = first; start <= last; start++) {
    let end = start;
    while (end <= last && Number.isFinite(lower[end]) && Number.isFinite(upper[end])) end++;
    if (end === start) continue;
    context.beginPath();
    for (let k = start; k < end; k++) context.lineTo(axes.x(xs[k]), axes.y(upper[k]));
    for (let k = end - 1; k >= start; k--) context.lineTo(axes.x(xs[k]), axes.y(lower[k]));
    context.fill();
    start = end;
  }
}

/** Bars over the stretches that are flagged. */
function drawFlagged(context, axes, xs, flagged, first, last, colour) {
  context.fillStyle = colour;
  const half = xs.length > 1 ? (xs[1] - xs[0]) / 2 : 0.5;
  for (let k = first; k <= last; k++) {
    if (!flagged[k]) continue;
    let end = k;
    while (end < last && flagged[end + 1]) end++;
    const left = axes.x(xs[k] - half);
    context.fillRect(left, axes.area.top, Math.max(1, axes.x(xs[end] + half) - left), 4);
    k = end;
  }
}

/** Prediction, bounds and target over positions, with a mark at one of them. */
function drawBand(context, axes, data, ink, { first, last, cursor = null }) {
  inside(context, axes.area, () => {
    fillBetween(context, axes, data.x, data.lower, data.upper, first, last, ink.band);
    if (data.input) drawLine(context, axes, data.x, data.input, first, last, ink.input, 1);
    if (data.target) drawLine(context, axes, data.x, data.target, first, last, ink.target, 1.25);
    drawLine(context, axes, data.x, data.point, first, last, ink.point, 1.75);
    if (data.flagged) drawFlagged(context, axes, data.x, data.flagged, first, last, ink.flag);
    if (cursor === null || !(cursor >= first && cursor <= last)) return;
    const x = Math.round(axes.x(data.x[cursor])) + 0.5;
    context.strokeStyle = ink.dim;
    context.lineWidth = 1;
    stroke(context, [[x, axes.area.top], [x, axes.area.bottom]]);
    context.fillStyle = ink.point;
    context.beginPath();
    context.arc(x, axes.y(data.point[cursor]), 3.5, 0, 2 * Math.PI);
    context.fill();
  });
}

const LEGEND = {
  lower: ["band", "Bounds"],
  point: ["point", "Prediction"],
  target: ["target", "Target"],
  input: ["input", "Input"],
};

/** What the colours of a plot stand for, as far as these channels are drawn. */
function fillLegend(element, channels) {
  const known = Object.entries(LEGEND).filter(([name]) => channels.includes(name));
  element.replaceChildren(...known.map(([, [kind, word]]) => make("span", { className: `key ${kind}` }, word)));
}

/** A new element. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
