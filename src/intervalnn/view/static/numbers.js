"use strict";
// Numbers as people read them.

/** A number with as many decimals as a grid of this step can tell apart. */
function show(value, step) {
  if (!Number.isFinite(value)) return "–";
  const decimals = Math.max(0, Math.floor(-Math.log10(step || 1)));
  if (decimals > 6 || Math.abs(value) >= 1e7) return brief(value);
  return minus(value.toFixed(decimals));
}

/** A number with four digits, whatever its size. */
function brief(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const plain = value === 0 || (size >= 1e-4 && size < 1e6);
  return minus(plain ? String(Number(value.toPrecision(4))) : value.toExponential(3));
}

/** A share as percent, with more decimals where it is small. */
function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const decimals = share > 0 && share < 0.001 ? 3 : share > 0 && share < 0.1 ? 2 : 1;
  return `${(100 * share).toFixed(decimals)} %`;
}

function minus(text) {
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text.replaceAll("-", "−");
}

/** Round numbers between two ends, about as many as wanted. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [];
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= rough * 0.999);
  const first = Math.ceil(low / step);
  const last = Math.floor(high / step);
  return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}
