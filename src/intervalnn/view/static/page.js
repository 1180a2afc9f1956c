"use strict";
// Page: opens a prediction, and does what is the same for all of them.

const config = JSON.parse(byId("config").textContent);
let current = null; // the view that is open
let opening = 0; // how often one was asked for

/** "light" or "dark", as it is now. */
const theme = () => document.documentElement.dataset.theme;

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").setAttribute("aria-pressed", name === "dark");
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  current?.resize();
}

function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

/** Say that the server has gone, or what it refused. */
function lost(error) {
  notice(error instanceof TypeError ? "The viewer was stopped. Start it again to go on." : error.message);
}

async function openEntry(number) {
  notice("Loading…");
  const mine = ++opening;
  try {
    const meta = config.meta ?? JSON.parse(new TextDecoder().decode(await fetchBytes(`${number}/meta`)));
    const read = config.meta ? (i) => embeddedBytes(`slice-${i}`) : (i) => fetchBytes(`${number}/slice/${i}`);
    const slices = new Slices(meta, read);
    const middle = meta.kind === "image" ? meta.slices >> 1 : 0;
    await slices.get(middle);
    if (mine !== opening) return; // the user has chosen another
    byId("main").hidden = false;
    const view = new (meta.kind === "image" ? ImageView : SignalView)(meta, slices, theme);
    current = view;
    document.title = `${meta.title} – intervalnn`;
    byId("title").textContent = meta.title;
    byId("facts").textContent = facts(meta);
    byId("promise-text").textContent = meta.promise;
    byId("promise").hidden = !meta.promise;
    view.resize();
    if (middle) view.slicing.set(middle);
    else await view.go(0);
    fillHelp(view);
    notice("");
    const counts = await (config.meta ? embeddedBytes("counts") : fetchBytes(`${number}/counts`));
    if (current === view) view.flags.take(new Uint32Array(counts));
  } catch (error) {
    if (mine !== opening) return;
    current = null; // what was open before would stand under the name of this one
    byId("main").hidden = byId("promise").hidden = true;
    byId("facts").textContent = "";
    lost(error);
  }
}

function facts(meta) {
  const size = meta.kind === "image" ? [meta.columns, meta.rows] : [meta.columns];
  const parts = [[...size, ...(meta.slices > 1 ? [meta.slices] : [])].join(" × ")];
  if (meta.spacing) parts.push(`${meta.spacing.map((mm) => brief(Number(mm.toPrecision(3)))).reverse().join(" × ")} mm`);
  if (meta.unit) parts.push(meta.unit);
  return parts.join("  ·  ");
}

const KEYS = [
  { keys: ["d"], shown: "d", does: "dark or light", run: () => setTheme(theme() === "dark" ? "light" : "dark") },
  { keys: ["?"], shown: "?", does: "this help", run: () => byId("help").showModal() },
];
if (config.entries.length > 1) {
  KEYS.push({ keys: ["n", "b"], shown: "n  b", does: "next prediction, the one before",
    run: (event) => chooseEntry(byId("entry").selectedIndex + (event.key === "n" ? 1 : -1)) });
}

function fillHelp(view) {
  const row = (left, right) => make("tr", {}, make("th", { scope: "row" }, ...left), make("td", {}, right));
  const caps = (shown) => shown.split("  ").map((key) => make("kbd", {}, key));
  const keys = [...view.keys, ...KEYS].map(({ shown, does }) => row(caps(shown), does));
  byId("help-keys").tBodies[0].replaceChildren(...keys);
  byId("help-mouse").tBodies[0].replaceChildren(...view.mouse.map(([what, does]) => row([what], does)));
  byId("help-note").textContent =
    "Direction: orange where the gap above the prediction is the larger, blue where that below is, the stronger the " +
    "more they differ. Large errors would lie on the wider side; on which side the truth is more likely it does not " +
    "say. The error has the same colours, so equal colours mean that the target lies on the wider side.";
}

function chooseEntry(number) {
  if (number < 0 || number >= config.entries.length) return;
  byId("entry").selectedIndex = number;
  openEntry(number);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !current || byId("help").open) return;
  const { tagName, type } = event.target;
  if (tagName === "SELECT" || type === "number") return;
  const moves = /^(Arrow|Page|Home|End)/.test(event.key);
  if (moves && (type === "range" || type === "radio")) return; // theirs
  const found = [...current.keys, ...KEYS].find(({ keys }) => keys.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found.run(event);
});

byId("theme").onclick = () => setTheme(theme() === "dark" ? "light" : "dark");
byId("help-open").onclick = () => byId("help").showModal();
byId("choice").hidden = config.entries.length < 2;
byId("title").hidden = config.entries.length > 1;
byId("entry").replaceChildren(...config.entries.map((name) => make("option", {}, name)));
byId("entry").onchange = (event) => openEntry(event.target.selectedIndex);
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.onchange = () => setTheme(dark.matches ? "dark" : "light");
setTheme(dark.matches ? "dark" : "light");
new ResizeObserver(() => current?.resize()).observe(byId("main"));
openEntry(0);
