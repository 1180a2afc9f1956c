"use strict";
// Pointer: what mouse, pen and fingers do on a picture.

/**
 * Tell what the pointer does on an element.
 * @param tool Gives what a plain drag does now: "move", "window" or "line".
 * @param on Functions hover(at), drag(kind, dx, dy, at, start), zoom(at, ratio), scroll(steps), enlarge().
 */
function listen(element, tool, on) {
  const down = new Map(); // the pointers that are pressed, by id
  let kind = null;
  let start = null;
  let spread = 0;
  let turned = 0;

  const place = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  element.addEventListener("pointerdown", (event) => {
    const at = place(event);
    down.set(event.pointerId, at);
    element.setPointerCapture(event.pointerId);
    kind = down.size > 1 ? "pinch" : kindOf(event, tool());
    start = at;
    spread = 0;
    on.hover(at);
  });

  element.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = down.get(event.pointerId);
    if (!before) return on.hover(at);
    down.set(event.pointerId, at);
    if (kind === "pinch") {
      const [a, b] = [...down.values()];
      if (!b) return;
      const now = Math.hypot(a.x - b.x, a.y - b.y);
      if (spread) on.zoom({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }, now / spread);
      spread = now;
    } else {
      on.drag(kind, at.x - before.x, at.y - before.y, at, start);
      if (kind !== "window") on.hover(at);
    }
  });

  for (const name of ["pointerup", "pointercancel"]) {
    element.addEventListener(name, (event) => down.delete(event.pointerId));
  }
  element.addEventListener("contextmenu", (event) => event.preventDefault());
  element.addEventListener("dblclick", () => on.enlarge());

  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const amount = event.deltaY * (event.deltaMode === 1 ? 40 : 1);
    if (event.ctrlKey || event.metaKey) return on.zoom(place(event), Math.exp(-amount / 200));
    turned += amount; // touchpads send many small turns
    const steps = Math.trunc(turned / 50);
    turned -= steps * 50;
    if (steps) on.scroll(Math.sign(steps), place(event));
  }, { passive: false });
}

/** What a drag does, by its button and keys. */
function kindOf(event, tool) {
  if (event.button === 2 || event.altKey) return "window";
  if (event.button === 1) return "move";
  return event.shiftKey ? "line" : tool;
}
