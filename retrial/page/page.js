"use strict";
// Sorting, searching and filtering of the table, and opening of its instances. Nothing is asked of anybody.
(() => {
  const table = document.getElementById("table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const texts = new Map(); // made when somebody first searches
  const search = document.getElementById("search");
  const selects = [...document.querySelectorAll("[data-filter]")];
  const matching = document.getElementById("matching");

  const opened = (row) => (row.nextElementSibling?.className === "details" ? row.nextElementSibling : null);

  const text = (row) => texts.get(row) ?? texts.set(row, row.textContent.toLowerCase()).get(row);
  const tell = (found) => (matching.textContent = `${found} of ${rows.length} shown`);

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const chosen = selects.every((each) => !each.value || row.dataset[each.dataset.filter] === each.value);
      const shown = chosen && words.every((word) => text(row).includes(word));
      row.hidden = !shown;
      const details = opened(row);
      if (details) details.hidden = !shown;
      found += shown;
    }
    tell(found);
  }

  const value = (row, column, kind) => {
    const cell = row.cells[column];
    return kind === "number" ? Number(cell.dataset.v) : cell.textContent;
  };

  function sort(header) {
    const column = header.cellIndex;
    const kind = header.dataset.kind;
    const down = header.ariaSort === "ascending";
    for (const each of header.parentNode.cells) each.ariaSort = "none";
    header.ariaSort = down ? "descending" : "ascending";
    const keyed = rows.map((row) => [value(row, column, kind), row, opened(row)]);
    const order = kind === "number" ? (a, b) => a[0] - b[0] : (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);
    keyed.sort((a, b) => (down ? order(b, a) : order(a, b)));
    const all = document.createDocumentFragment();
    for (const [, row, details] of keyed) {
      all.append(row);
      if (details) all.append(details);
    }
    body.append(all);
  }

  let packed = null; // a line for each instance: what it is made from, and itself; megabytes, so when it is first needed

  async function unpacked(place) {
    packed ??= document.getElementById("packed").textContent.trim().split("\n");
    const [, text] = packed[place].split(" ");
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  async function open(button) {
    const row = button.closest("tr");
    const details = opened(row);
    if (details) {
      details.remove();
      button.ariaExpanded = "false";
      return;
    }
    button.ariaExpanded = "true";
    const place = document.createElement("tr");
    place.className = "details";
    const cell = place.insertCell();
    cell.colSpan = row.cells.length;
    row.after(place);
    // All of it was escaped when the page was written, and the page's policy lets no other script run.
    cell.innerHTML = await unpacked(row.dataset.place);
    for (const each of cell.querySelectorAll("pre, .tests")) each.tabIndex = 0; // they scroll, also by keyboard
    cell.firstElementChild.setAttribute("role", "region");
    cell.firstElementChild.setAttribute("aria-label", `Details of ${button.textContent}`);
  }

  function follow() {
    const button = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!button?.classList.contains("open")) return;
    if (button.ariaExpanded === "false") open(button);
    button.focus();
    button.scrollIntoView({ block: "start" });
  }

  table.tHead.addEventListener("click", (event) => {
    const header = event.target.closest("th");
    if (header) sort(header);
  });
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button.open");
    if (button) open(button);
  });
  search.addEventListener("input", filter);
  for (const each of selects) each.addEventListener("change", filter);
  document.querySelector("form.filters").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", follow);
  tell(rows.length);
  follow();
})();
