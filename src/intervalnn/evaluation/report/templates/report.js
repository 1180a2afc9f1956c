"use strict";

// Sort a table by the column whose heading is pressed, and the other way round when it is pressed again.
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const table = heading.closest("table");
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const place = Number(button.dataset.place);
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(a.cells[place], b.cells[place], down ? -1 : 1));
    table.tBodies[0].append(...rows);
  });
}

// Numbers by value, names by letters; what is undefined stays at the end either way.
function compare(a, b, sign) {
  if (a.dataset.value === undefined) return sign * a.textContent.localeCompare(b.textContent);
  if (a.dataset.value === "" || b.dataset.value === "") return (a.dataset.value === "") - (b.dataset.value === "");
  const [first, second] = [a, b].map((cell) => Number(cell.dataset.value.replace("inf", "Infinity")));
  return first === second ? 0 : sign * (first < second ? -1 : 1);
}

// On paper nothing can be opened.
addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
});
