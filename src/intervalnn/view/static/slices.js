"use strict";
// Slices: fetched when wanted, kept while there is room, and those around them before they are asked for.

const ROOM = 125e6 * (navigator.deviceMemory ?? 4); // bytes: an eighth of the memory, as far as browsers tell
const AT_ONCE = 2; // fetched ahead side by side

class Slices {
  /** @param read Gives the bytes of slice i. */
  constructor(meta, read) {
    this.meta = meta;
    this.read = read;
    this.room = Math.max(8, Math.floor(ROOM / (2 * meta.rows * meta.columns * meta.channels.length)));
    this.kept = new Map(); // in the order they were last used
    this.coming = new Map();
    this.wished = [];
    this.fetching = 0;
  }

  /** The slice if it is here. */
  peek(i) {
    const slice = this.kept.get(i);
    if (slice) this.keep(i, slice);
    return slice;
  }

  /** The slice, here or fetched. */
  async get(i) {
    const here = this.peek(i);
    if (here) return here;
    if (!this.coming.has(i)) this.coming.set(i, this.fetch(i).finally(() => this.coming.delete(i)));
    return this.coming.get(i);
  }

  async fetch(i) {
    const slice = readSlice(await this.read(i), this.meta);
    this.keep(i, slice);
    return slice;
  }

  keep(i, slice) {
    this.kept.delete(i);
    this.kept.set(i, slice);
    while (this.kept.size > this.room) this.kept.delete(this.kept.keys().next().value);
  }

  /** Fetch the slices around one as far as there is room, first those near and on the way. */
  async prepare(i, way) {
    this.wished = around(i, way, this.meta.slices).slice(0, this.room - 1);
    await Promise.all(Array.from({ length: AT_ONCE - this.fetching }, () => this.work()));
  }

  async work() {
    this.fetching++;
    try {
      while (this.wished.length) {
        const next = this.wished.shift();
        if (!this.kept.has(next)) await this.get(next);
      }
    } finally {
      this.fetching--;
    }
  }
}

/** All other slices, the likeliest next first: those behind count as three times as far. */
function around(i, way, count) {
  const far = (k) => ((k - i) * way > 0 ? Math.abs(k - i) : 3 * Math.abs(k - i));
  const others = Array.from({ length: count }, (_, k) => k).filter((k) => k !== i);
  return others.sort((a, b) => far(a) - far(b));
}

/** Reads from the server that sent the page. */
async function fetchBytes(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.arrayBuffer();
}

/** Reads deflated bytes from the page itself. */
async function embeddedBytes(id) {
  const text = document.getElementById(id).textContent;
  const inflated = new Blob([decode64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(inflated).arrayBuffer();
}

function decode64(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) bytes[k] = letters.charCodeAt(k);
  return bytes;
}
