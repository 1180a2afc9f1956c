"use strict";
// Geometry: where pixels of an image lie on the screen. A look is how far it is magnified beyond fitting, and
// which point of the image is at the centre; all panels share it, whatever their size.

/** Scale and shift from image to screen, for a panel of this size; pixels may be oblong. */
function transform(look, panel, image) {
  const [high, wide] = image.spacing ?? [1, 1];
  const small = Math.min(high, wide);
  const fit = Math.min(panel.width / (image.columns * (wide / small)), panel.height / (image.rows * (high / small)));
  const sx = fit * look.zoom * (wide / small);
  const sy = fit * look.zoom * (high / small);
  return { sx, sy, tx: panel.width / 2 - look.x * sx, ty: panel.height / 2 - look.y * sy };
}

function fitted(image) {
  return { zoom: 1, x: image.columns / 2, y: image.rows / 2 };
}

function toImage(t, x, y) {
  return { x: (x - t.tx) / t.sx, y: (y - t.ty) / t.sy };
}

/** The look magnified about a point of the screen, which stays where it is. */
function zoomed(look, t, at, ratio, image) {
  const zoom = clamp(look.zoom * ratio, 1, 64);
  const point = toImage(t, at.x, at.y);
  const share = look.zoom / zoom;
  const moved = { zoom, x: point.x + (look.x - point.x) * share, y: point.y + (look.y - point.y) * share };
  return zoom === 1 ? fitted(image) : within(moved, image);
}

function moved(look, t, dx, dy, image) {
  return within({ zoom: look.zoom, x: look.x - dx / t.sx, y: look.y - dy / t.sy }, image);
}

function within(look, image) {
  return { zoom: look.zoom, x: clamp(look.x, 0, image.columns), y: clamp(look.y, 0, image.rows) };
}

/** The pixels along a line, and how far each lies from its start, in mm where the spacing is known. */
function along(from, to, image) {
  const [high, wide] = image.spacing ?? [1, 1];
  const steps = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y), 1);
  const count = Math.round(steps) + 1;
  const length = Math.hypot((to.x - from.x) * wide, (to.y - from.y) * high);
  const pixels = [];
  const distances = [];
  for (let k = 0; k < count; k++) {
    const share = k / (count - 1);
    const x = clamp(Math.round(from.x + (to.x - from.x) * share), 0, image.columns - 1);
    const y = clamp(Math.round(from.y + (to.y - from.y) * share), 0, image.rows - 1);
    pixels.push(y * image.columns + x);
    distances.push(length * share);
  }
  return { pixels, distances };
}

/** The number of columns in which so many panels show an image largest. */
function bestColumns(count, width, height, aspect) {
  let best = 1;
  let size = 0;
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const shown = Math.min(width / columns / aspect, height / rows);
    if (shown > size * 1.01) [best, size] = [columns, shown];
  }
  return best;
}
