"use strict";
// Images: panels of one slice under one look, with windowing, flags, a profile and the numbers at the pointer.

// Level and width in use for CT, by the unit of the values.
const PRESETS = { HU: [["Lung", -600, 1500], ["Soft tissue", 40, 400], ["Bone", 480, 2500]] };

class ImageView {
  constructor(meta, slices, theme) {
    this.meta = meta;
    this.slices = slices;
    this.theme = theme;
    this.slice = null;
    this.look = fitted(meta);
    this.cursor = { x: meta.columns >> 1, y: meta.rows >> 1 };
    this.enlarged = null;
    this.dirty = new Set();
    const { value, score, error, input } = meta.ranges;
    this.ranges = { value, score, input, direction: [-1, 1], error: error && [-error[1], error[1]] };
    this.outlines = make("canvas");
    this.slicing = new SliceControl(meta, "Slice", (i, way) => this.go(i, way).catch(lost));
    const words = { one: "slice", many: "slices", things: "pixels", mark: "Outline" };
    this.flags = new FlagControl(meta, words, () => this.need("place"));
    this.readout = new Readout(meta);
    this.profile = new Profile(meta, { point: (pixel) => this.point(pixel), change: () => this.need("mark") });
    for (const id of ["profile", "window-section", "tool-section", "panel-section"]) byId(id).hidden = false;
    byId("signal").hidden = true;
    byId("panels").hidden = false;
    this.makePanels();
    this.makeWindow();
    this.makeTools();
  }

  // What is on the page.

  makePanels() {
    const known = this.meta.channels.includes("target") ? [...this.meta.channels, "error"] : this.meta.channels;
    this.panels = PANELS.filter(({ name }) => known.includes(name)).map((kind) => new Panel(kind, this.meta));
    this.panels.forEach((panel, k) => (panel.shown = k < 6));
    byId("panels").replaceChildren(...this.panels.map((panel) => panel.element));
    byId("panel-checks").replaceChildren(...this.panels.map((panel) => this.panelCheck(panel)));
    for (const panel of this.panels) {
      listen(panel.stage, () => byId("tool").querySelector(":checked").value, {
        hover: (at) => this.point(toImage(this.t, at.x, at.y)),
        drag: (kind, dx, dy, at, start) => this.drag(panel, kind, dx, dy, at, start),
        zoom: (at, ratio) => this.zoom(at, ratio),
        scroll: (steps, at) => (this.meta.slices > 1 ? this.slicing.step(steps) : this.zoom(at, 0.8 ** steps)),
        enlarge: () => this.enlarge(panel),
      });
      panel.stage.onkeydown = (event) => event.key === "Enter" && this.enlarge(panel);
    }
  }

  panelCheck(panel) {
    panel.box = make("input", { type: "checkbox", checked: panel.shown });
    panel.box.onchange = () => {
      panel.shown = panel.box.checked;
      this.enlarged = null;
      this.resize();
    };
    return make("label", { className: "check" }, panel.box, ` ${panel.kind.title.split(":")[0]}`);
  }

  makeWindow() {
    const [low, high] = this.meta.ranges.value;
    this.presets = [["Auto", (low + high) / 2, high - low], ...(PRESETS[this.meta.unit] ?? [])];
    const buttons = this.presets.map(([name, level, width], k) => {
      const button = make("button", { type: "button", title: String(k + 1) }, name);
      button.onclick = () => this.window(level, width);
      return button;
    });
    byId("presets").replaceChildren(...buttons);
    byId("level").onchange = byId("width").onchange = () =>
      this.window(Number(byId("level").value), Number(byId("width").value));
    const usual = this.presets.find(([name]) => name === "Soft tissue") ?? this.presets[0];
    this.window(usual[1], usual[2]);
  }

  makeTools() {
    byId("zoom-in").onclick = () => this.zoom(this.middle(), 1.5);
    byId("zoom-out").onclick = () => this.zoom(this.middle(), 1 / 1.5);
    byId("zoom-fit").onclick = () => this.lookAt(fitted(this.meta));
    choose("tool", "move");
  }

  // What the user does.

  async go(i, way = 1) {
    const here = this.slices.peek(i);
    this.take(i, here ?? (await this.slices.get(i)));
    this.slices.prepare(i, way).catch(lost);
  }

  take(i, slice) {
    if (i !== this.slicing.value) return; // the user has gone on
    this.slice = slice;
    this.seen = i;
    this.need("paint");
  }

  point({ x, y }) {
    const pixel = { x: Math.floor(x), y: Math.floor(y) };
    if (pixel.x < 0 || pixel.y < 0 || pixel.x >= this.meta.columns || pixel.y >= this.meta.rows) return;
    if (pixel.x === this.cursor.x && pixel.y === this.cursor.y) return;
    this.cursor = pixel;
    this.need("mark");
  }

  drag(panel, kind, dx, dy, at, start) {
    if (kind === "move") this.lookAt(moved(this.look, this.t, dx, dy, this.meta));
    if (kind === "window") this.windowBy(panel.kind.scale, dx / 250, dy / 250);
    if (kind === "line") this.profile.draw(toImage(this.t, start.x, start.y), toImage(this.t, at.x, at.y));
  }

  zoom(at, ratio) {
    this.lookAt(zoomed(this.look, this.t, at, ratio, this.meta));
  }

  lookAt(look) {
    this.look = look;
    this.t = transform(look, this.size, this.meta);
    this.need("place");
  }

  middle() {
    const { width, height } = this.size;
    return { x: width / 2, y: height / 2 };
  }

  window(level, width) {
    const wide = Math.max(width, 1e-9 * (Math.abs(level) || 1));
    this.ranges.value = [level - wide / 2, level + wide / 2];
    byId("level").value = Number(level.toPrecision(4));
    byId("width").value = Number(wide.toPrecision(4));
    [...byId("presets").children].forEach((button, k) => {
      const [, presetLevel, presetWidth] = this.presets[k];
      button.setAttribute("aria-pressed", presetLevel === level && presetWidth === width);
    });
    this.need("paint");
  }

  /** Widen the range of a scale and move it, by shares of its width; scores start at 0, errors are centred there. */
  windowBy(scale, wider, higher) {
    if (scale === "direction") return;
    const [low, high] = this.ranges[scale];
    const width = (high - low) * Math.exp(wider);
    const level = (low + high) / 2 + higher * (high - low);
    if (scale === "value") return this.window(level, width);
    if (scale === "input") this.ranges.input = [level - width / 2, level + width / 2];
    if (scale === "score") this.ranges.score = [0, width];
    if (scale === "error") this.ranges.error = [-width / 2, width / 2];
    this.need("paint");
  }

  enlarge(panel) {
    this.enlarged = this.enlarged === panel ? null : panel;
    this.resize();
    if (this.enlarged) panel.stage.focus();
  }

  step(dx, dy) {
    this.point({
      x: clamp(this.cursor.x + dx, 0, this.meta.columns - 1),
      y: clamp(this.cursor.y + dy, 0, this.meta.rows - 1),
    });
    this.draw();
    this.readout.speak();
  }

  // What is drawn, once a frame at most: "paint" colours, "place" moves pictures, "mark" is the pointer alone.

  need(what) {
    if (!this.dirty.size) requestAnimationFrame(() => this.draw());
    this.dirty.add(what);
  }

  draw() {
    const dirty = this.dirty;
    this.dirty = new Set();
    if (!this.slice || !this.size) return;
    const shown = this.visible();
    if (dirty.has("paint")) shown.forEach((panel) => panel.paint(this.slice, this.ranges, this.theme()));
    if (dirty.has("paint") || dirty.has("place")) this.place(shown);
    const line = this.profile.ends(this.cursor);
    shown.forEach((panel) => panel.mark(this.t, this.cursor, line, this.profile.mode === "line"));
    const { x, y } = this.cursor;
    const [row, column] = this.meta.origin;
    this.readout.show(this.slice, y * this.meta.columns + x, `column ${x + column}, row ${y + row}`);
    this.profile.plot(this.slice, this.cursor, this.flags.shown.checked ? this.flags.level : null);
    document.documentElement.dataset.drawn = this.seen; // which slice can be seen now
  }

  place(shown) {
    const flagging = this.flags.shown.checked;
    if (flagging) {
      this.outlines.width = Math.max(1, Math.round(this.size.width));
      this.outlines.height = Math.max(1, Math.round(this.size.height));
      outline(this.outlines, this.slice.channels.score, this.flags.level, this.t, this.meta);
    }
    shown.forEach((panel) => panel.place(this.t, flagging && panel.grey ? this.outlines : null));
    this.flags.count(this.slice);
    byId("inside").textContent = `Targets inside the bounds, this slice: ${percent(this.slice.inside)}`;
    byId("inside").hidden = !this.slice.channels.target;
    byId("zoom-number").textContent = `${Math.round(100 * this.look.zoom)} %`;
  }

  visible() {
    return this.enlarged ? [this.enlarged] : this.panels.filter((panel) => panel.shown);
  }

  /** Lay the panels out anew. */
  resize() {
    if (!this.visible().length) this.panels[0].shown = this.panels[0].box.checked = true;
    const shown = this.visible();
    const box = byId("panels");
    for (const panel of this.panels) panel.element.hidden = !shown.includes(panel);
    const [high, wide] = this.meta.spacing ?? [1, 1];
    const aspect = (this.meta.columns * wide) / (this.meta.rows * high);
    const narrow = matchMedia("(max-width: 760px)").matches;
    const best = bestColumns(shown.length, box.clientWidth, box.clientHeight, aspect);
    box.style.setProperty("--columns", narrow ? Math.min(2, shown.length) : best);
    box.style.setProperty("--aspect", aspect);
    shown.forEach((panel) => panel.resize());
    this.size = shown[0].size;
    this.t = transform(this.look, this.size, this.meta);
    this.need("paint");
  }

  get keys() {
    const far = (event) => (event.shiftKey ? 10 : 1);
    return [
      { keys: ["PageDown", "."], shown: "Page ↓  .", does: "next slice", run: () => this.slicing.step(1) },
      { keys: ["PageUp", ","], shown: "Page ↑  ,", does: "slice before", run: () => this.slicing.step(-1) },
      { keys: ["Home", "End"], shown: "Home  End", does: "first, last slice",
        run: (event) => this.slicing.set(event.key === "Home" ? 0 : this.meta.slices - 1) },
      { keys: ["ArrowLeft", "ArrowRight"], shown: "←  →", does: "move the pointer (Shift: by 10)",
        run: (event) => this.step((event.key === "ArrowLeft" ? -1 : 1) * far(event), 0) },
      { keys: ["ArrowUp", "ArrowDown"], shown: "↑  ↓", does: "the same, up and down",
        run: (event) => this.step(0, (event.key === "ArrowUp" ? -1 : 1) * far(event)) },
      { keys: ["+", "=", "-"], shown: "+  −", does: "zoom in, out",
        run: (event) => this.zoom(this.middle(), event.key === "-" ? 1 / 1.5 : 1.5) },
      { keys: ["0"], shown: "0", does: "fit the panels", run: () => this.lookAt(fitted(this.meta)) },
      { keys: ["1", "2", "3", "4"], shown: this.presets.map((_, k) => k + 1).join("  "),
        does: `window: ${this.presets.map(([name]) => name.toLowerCase()).join(", ")}`,
        run: (event) => byId("presets").children[Number(event.key) - 1]?.click() },
      { keys: ["q", "w"], shown: "q  w", does: "narrower, wider window",
        run: (event) => this.windowBy("value", event.key === "q" ? -0.1 : 0.1, 0) },
      { keys: ["a", "s"], shown: "a  s", does: "level down, up",
        run: (event) => this.windowBy("value", 0, event.key === "a" ? -0.05 : 0.05) },
      { keys: ["f"], shown: "f", does: "outlines of what is flagged, on or off", run: () => this.flags.toggle() },
      { keys: ["t", "T"], shown: "t  Shift t", does: "lower, higher threshold",
        run: (event) => this.flags.set(this.flags.level + (event.key === "t" ? -500 : 500)) },
      { keys: ["r", "c", "l"], shown: "r  c  l", does: "profile of the row, the column, a line",
        run: (event) => this.profileBy(event.key) },
      { keys: ["p"], shown: "p", does: "profile, on or off", run: () => this.toggleProfile() },
      { keys: ["m", "v"], shown: "m  v", does: "dragging moves, windows",
        run: (event) => choose("tool", event.key === "m" ? "move" : "window") },
      { keys: ["e"], shown: "e  Enter", does: "enlarge the panel, and back",
        run: () => this.enlarge(this.enlarged ?? this.focused() ?? this.panels[0]) },
      { keys: ["Escape"], shown: "Esc", does: "back to all panels; forget the line", run: () => this.back() },
    ];
  }

  focused() {
    return this.panels.find((panel) => panel.stage === document.activeElement);
  }

  profileBy(key) {
    if (key === "l") choose("tool", "line");
    this.profile.set({ r: "row", c: "column", l: "line" }[key]);
  }

  toggleProfile() {
    this.profile.shown = !this.profile.shown;
    this.resize();
  }

  back() {
    if (this.enlarged) return this.enlarge(this.enlarged);
    choose("tool", "move");
    this.profile.forget();
  }

  get mouse() {
    return [
      ["wheel", this.meta.slices > 1 ? "slices" : "zoom"],
      ["Ctrl wheel, pinch", "zoom"],
      ["drag, middle button", "move"],
      ["right drag, Alt drag", "window: sideways width, up brighter; on score and error their range"],
      ["Shift drag", "draw a line for the profile"],
      ["double click", "enlarge a panel, and back"],
      ["over the profile", "shows the place in the pictures"],
    ];
  }
}
