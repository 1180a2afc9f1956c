"use strict";
// Levels: numbers travel as 16 bits. Values lie on an even grid of their own in each slice; the score on one
// grid for all, finer where it is small, so that counting levels above a threshold is exact.

const LAST = 65534; // the highest level of a number
const NO_NUMBER = 65535; // not finite: above every threshold, and painted in no colour
const HEAD = 40; // bytes of five 64-bit floats

/** The bytes of a slice as its grids and its channels. */
function readSlice(buffer, meta) {
  const [offset, step, inputOffset, inputStep, inside] = new Float64Array(buffer, 0, HEAD / 8);
  const size = meta.rows * meta.columns;
  const channels = {};
  meta.channels.forEach((name, k) => {
    channels[name] = new Uint16Array(buffer, HEAD + 2 * k * size, size);
  });
  return { offset, step, inputOffset, inputStep, inside, channels };
}

/** The score of a level, by the very operations of the other side. */
function scoreOf(level, top) {
  const share = level / LAST;
  return top * (share * share * share);
}

/** The level whose score is nearest. */
function levelOf(score, top) {
  return top > 0 ? clamp(Math.round(LAST * Math.cbrt(score / top)), 0, LAST) : 0;
}

/** Offset and step of the grid that a channel lies on. */
function gridOf(slice, channel) {
  if (channel === "direction") return [-1, 2 / LAST];
  return channel === "input" ? [slice.inputOffset, slice.inputStep] : [slice.offset, slice.step];
}

/** The number of a channel at a pixel; NaN where there is none. */
function valueAt(slice, channel, pixel, meta) {
  if (channel === "error") return valueAt(slice, "target", pixel, meta) - valueAt(slice, "point", pixel, meta);
  const level = slice.channels[channel]?.[pixel] ?? NO_NUMBER;
  if (level === NO_NUMBER) return NaN;
  if (channel === "score") return scoreOf(level, meta.scoreTop);
  const [offset, step] = gridOf(slice, channel);
  return offset + step * level;
}

/** All that is known at a pixel. */
function valuesAt(slice, pixel, meta) {
  const names = slice.channels.target ? [...meta.channels, "error"] : meta.channels;
  return Object.fromEntries(names.map((name) => [name, valueAt(slice, name, pixel, meta)]));
}

/** How many levels lie above one. */
function countAbove(levels, threshold) {
  let count = 0;
  for (let k = 0; k < levels.length; k++) if (levels[k] > threshold) count++;
  return count;
}

/** For each level, how many scores lie above it, from how many have it. */
function above(counts) {
  const sums = new Float64Array(counts.length);
  for (let k = counts.length - 2; k >= 0; k--) sums[k] = sums[k + 1] + counts[k + 1];
  return sums;
}

/** The numbers of a channel at some pixels. */
function series(slice, channel, pixels, meta) {
  return Float64Array.from(pixels, (pixel) => valueAt(slice, channel, pixel, meta));
}

/** What a band plot draws, at some pixels. */
function bandAt(slice, pixels, meta, threshold) {
  const { score } = slice.channels;
  const data = { flagged: threshold === null ? null : Array.from(pixels, (pixel) => score[pixel] > threshold) };
  for (const name of meta.channels) data[name] = series(slice, name, pixels, meta);
  return data;
}
