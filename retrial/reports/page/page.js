"use strict";
// Sorting, searching and filtering of the table, and opening of its instances. Nothing is asked of anybody.
(() => {
  document.documentElement.classList.add("scripted");
  const named = (place) => place.closest("figure")?.querySelector("figcaption") ?? place.querySelector("caption");
  // What scrolls can be scrolled by keyboard too, and has a name then.
  for (const place of document.querySelectorAll(".scroll:not([role]), .chart")) {
    if (place.scrollWidth <= place.clientWidth) continue;
    place.tabIndex = 0;
    place.setAttribute("role", place.getAttribute("role") ?? "region");
    if (!place.hasAttribute("aria-label")) place.setAttribute("aria-label", named(place)?.textContent ?? "Table");
  }

  const table = document.getElementById("table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const buttons = new Map([...body.querySelectorAll("button.open")].map((each) => [each.textContent, each]));
  const texts = new Map(); // made when somebody first searches
  const search = document.getElementById("search");
  const selects = [...document.querySelectorAll("[data-filter]")];
  const matching = document.getElementById("matching");
  const inOrder = new Intl.Collator("en", { numeric: true }).compare;

  const opened = (row) => (row.nextElementSibling?.className === "details" ? row.nextElementSibling : null);
  const isOpen = (button) => button.getAttribute("aria-expanded") === "true";
  const words = (row) => `${row.textContent} ${row.dataset.outcome}`.toLowerCase();
  const text = (row) => texts.get(row) ?? texts.set(row, words(row)).get(row);
  const tell = (found) => (matching.textContent = `${found} of ${rows.length} shown`);

  function filter() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const chosen = selects.every((each) => !each.value || row.dataset[each.dataset.filter] === each.value);
      const shown = chosen && wanted.every((word) => text(row).includes(word));
      row.hidden = !shown;
      const details = opened(row);
      if (details) details.hidden = !shown;
      found += shown;
    }
    tell(found);
  }

  // What is not known is last, whichever way.
  const value = (row, column, kind) => {
    const cell = row.cells[column];
    if (kind !== "number") return cell.textContent === "–" ? null : cell.textContent;
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };

  function sort(header) {
    const kind = header.dataset.kind;
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const each of header.parentNode.cells) each.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = kind === "number" ? (a, b) => a - b : inOrder;
    const keyed = rows.map((row) => [value(row, header.cellIndex, kind), row, opened(row)]);
    keyed.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : down ? order(b, a) : order(a, b)));
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
    const bytes = Uint8Array.from(atob(packed[place].split(" ")[1]), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function close(button) {
    opened(button.closest("tr"))?.remove();
    button.setAttribute("aria-expanded", "false");
  }

  async function open(button) {
    const row = button.closest("tr");
    button.setAttribute("aria-expanded", "true");
    const place = document.createElement("tr");
    place.className = "details";
    const cell = place.insertCell();
    cell.colSpan = row.cells.length;
    row.after(place);
    history.replaceState(null, "", `#${encodeURIComponent(button.textContent)}`);
    if (!("DecompressionStream" in window)) {
      cell.textContent = "This browser cannot unpack what is known of an instance: see its .md beside this page.";
      return;
    }
    // All of it was escaped when the page was written, and the page's policy lets no other script run.
    cell.innerHTML = await unpacked(row.dataset.place);
    for (const each of cell.querySelectorAll("pre, .tests")) each.tabIndex = 0; // they scroll, also by keyboard
    cell.firstElementChild.setAttribute("role", "region");
    cell.firstElementChild.setAttribute("aria-label", `Details of ${button.textContent}`);
  }

  function asked() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return ""; // no address of ours
    }
  }

  function follow() {
    const button = buttons.get(asked());
    if (!button) return;
    if (button.closest("tr").hidden) {
      search.value = "";
      for (const each of selects) each.value = "";
      filter();
    }
    if (!isOpen(button)) open(button);
    button.focus();
    button.scrollIntoView({ block: "start" });
  }

  table.tHead.addEventListener("click", (event) => {
    const header = event.target.closest("th");
    if (header) sort(header);
  });
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button.open");
    if (button) (isOpen(button) ? close : open)(button);
  });
  search.addEventListener("input", filter);
  for (const each of selects) each.addEventListener("change", filter);
  document.querySelector("form.filters").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", follow);
  tell(rows.length);
  follow();
  // Laid out while nobody waits for it: not when the page opens, and not when somebody scrolls there.
  const place = table.closest(".scroll");
  (window.requestIdleCallback ?? setTimeout)(() => (place.style.contentVisibility = "visible"));
})();
