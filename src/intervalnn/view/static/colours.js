"use strict";
// Colours, by formula in a space where equal steps look equal (OKLab), so that lightness alone tells the order.

/** One colour, from lightness, colourfulness and hue in degrees, as the four bytes that a canvas holds. */
function colour(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return packed(
    gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    gamma(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  );
}

function gamma(linear) {
  const light = clamp(linear, 0, 1);
  return Math.round(255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055));
}

function packed(red, green, blue) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** A packed colour as style sheets write it. */
function css(colour) {
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

function map(of) {
  return Uint32Array.from({ length: 256 }, (_, k) => of(k / 255));
}

const GREY = map((t) => packed(Math.round(255 * t), Math.round(255 * t), Math.round(255 * t)));

/** From dark violet over teal to light yellow. */
const SEQUENTIAL = map((t) => colour(0.2 + 0.73 * t, 0.09 + 0.07 * t, 300 - 190 * t));

/** Blue below, orange above; the middle recedes into a light or a dark page. */
const DIVERGING = {
  light: map((t) => diverging(2 * t - 1, 0.97, 0.55)),
  dark: map((t) => diverging(2 * t - 1, 0.17, 0.76)),
};

function diverging(t, middle, end) {
  const far = Math.abs(t);
  return colour(middle + (end - middle) * far, 0.145 * far ** 0.8, t < 0 ? 248 : 55);
}

/** The colour of each level on an even grid, for a range of values. */
function evenColours(offset, step, [low, high], table) {
  const colours = new Uint32Array(NO_NUMBER + 1);
  const scale = 255 / (high - low || 1);
  for (let level = 0; level <= LAST; level++) {
    const k = (offset + step * level - low) * scale;
    colours[level] = table[k <= 0 ? 0 : k >= 255 ? 255 : (k + 0.5) | 0];
  }
  return colours;
}

/** The colour of each level of the score. */
function scoreColours(top, [low, high], table) {
  const colours = new Uint32Array(NO_NUMBER + 1);
  const scale = 255 / (high - low || 1);
  for (let level = 0; level <= LAST; level++) {
    colours[level] = table[clamp(Math.round((scoreOf(level, top) - low) * scale), 0, 255)];
  }
  return colours;
}

/** Paint levels in their colours. */
function paint(levels, colours, pixels) {
  for (let k = 0; k < levels.length; k++) pixels[k] = colours[levels[k]];
}

/** Paint how far one channel lies above another on the same grid. */
function paintDifference(plus, less, step, [low, high], table, pixels) {
  const scale = (step * 255) / (high - low || 1);
  const start = (-low * 255) / (high - low || 1) + 0.5;
  for (let k = 0; k < plus.length; k++) {
    const at = start + (plus[k] - less[k]) * scale;
    const none = plus[k] === NO_NUMBER || less[k] === NO_NUMBER;
    pixels[k] = none ? 0 : table[at <= 0 ? 0 : at >= 255 ? 255 : at | 0];
  }
}
