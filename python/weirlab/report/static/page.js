// What a page adds to its text and drawings where scripts run: plots that answer the pointer, and tables that
// sort and filter. Without it, and in print, the page shows the same drawings and tables.
"use strict";
(() => {
  const roles = JSON.parse(document.getElementById("roles").textContent);
  const style = () => getComputedStyle(document.documentElement);

  // --- plots ---

  const tooltip = Object.assign(document.createElement("div"), { className: "tooltip", hidden: true });
  tooltip.setAttribute("role", "status");
  document.body.append(tooltip);

  const showTooltip = (handler, event, item, value) => {
    tooltip.hidden = value === undefined || value === null || value === "";
    if (tooltip.hidden) return;
    const rows = typeof value === "object" ? Object.entries(value) : [["", String(value)]];
    tooltip.replaceChildren(...rows.map(([name, text]) => {
      const row = document.createElement("div");
      row.append(Object.assign(document.createElement("span"), { textContent: name === "name" ? "" : name.replaceAll("_", " ") }));
      row.append(Object.assign(document.createElement("b"), { textContent: text }));
      return row;
    }));
    const box = tooltip.getBoundingClientRect();
    tooltip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
    tooltip.style.top = `${Math.max(8, event.clientY - box.height - 10)}px`;
  };

  const plots = [];

  // The ranges of plots whose horizontal axes are the same move together.
  let isSharing = false;
  const shareRange = (from, name, range) => {
    if (isSharing) return;
    isSharing = true;
    const axis = from.figure.dataset.x;
    for (const plot of plots) {
      if (!plot.view || plot.figure.dataset.x !== axis) continue;
      for (const each of plot.ranges) if (plot !== from || each !== name) plot.view.signal(each, range);
      plot.view.runAsync();
    }
    isSharing = false;
  };

  const painted = (text) => {
    const colors = style();
    let found = text;
    for (const [role, color] of Object.entries(roles)) {
      found = found.replaceAll(color, colors.getPropertyValue(`--w-${role}`).trim());
    }
    return JSON.parse(found);
  };

  const draw = async (plot) => {
    plot.view?.finalize();
    const spec = painted(plot.text);
    spec.background = "transparent";
    const runtime = weirVega.parse(spec, null, { ast: true });
    plot.view = new weirVega.View(runtime, {
      expr: weirVega.expressionInterpreter,
      renderer: "svg",
      container: plot.place,
      hover: true,
      tooltip: showTooltip,
    });
    const names = Object.keys(plot.view.getState({ signals: () => true, data: () => false }).signals);
    plot.widths = names.filter((name) => /(^|_)(width|childWidth)$/.test(name) && plot.view.signal(name) > 100);
    plot.ranges = plot.figure.dataset.ranges.split(" ").filter((name) => names.includes(name));
    plot.full = plot.view.signal(plot.widths[0] ?? "width");
    await plot.view.runAsync();
    // One picture with a name: its parts have none that a reader of the screen could use.
    const svg = plot.place.querySelector("svg");
    svg.setAttribute("aria-hidden", "true");
    plot.place.setAttribute("role", "img");
    plot.place.removeAttribute("aria-roledescription");
    plot.place.setAttribute("aria-label", plot.figure.querySelector(":scope > svg").getAttribute("aria-label"));
    plot.extra = svg.viewBox.baseVal.width - plot.full;
    await fit(plot);
    for (const name of plot.ranges) plot.view.addSignalListener(name, (signal, range) => shareRange(plot, name, range));
    plot.figure.classList.add("lively");
  };

  const fit = async (plot) => {
    const width = Math.max(200, Math.min(plot.full, Math.floor(plot.figure.clientWidth - plot.extra)));
    if (width === plot.width && plot.fitted === plot.view) return;
    plot.width = width;
    plot.fitted = plot.view;
    for (const name of plot.widths) plot.view.signal(name, width);
    await plot.view.runAsync();
  };

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      const plot = plots.find((each) => each.figure === entry.target);
      draw(plot).catch((error) => {
        plot.place.remove();
        console.error(`${plot.figure.dataset.plot}: ${error}`);
      });
    }
  }, { rootMargin: "400px" });

  for (const figure of document.querySelectorAll("figure[data-plot]")) {
    const place = Object.assign(document.createElement("div"), { className: "plot" });
    const data = figure.querySelector("script");
    data.before(place);
    plots.push({ figure, place, text: data.textContent, view: null, ranges: [], widths: [] });
    seen.observe(figure);
    new ResizeObserver(() => {
      const plot = plots.find((each) => each.figure === figure);
      if (plot.fitted) fit(plot);
    }).observe(figure);
    place.addEventListener("dblclick", () => {
      const plot = plots.find((each) => each.figure === figure);
      for (const each of plots.filter((other) => other.view && other.figure.dataset.x === figure.dataset.x)) {
        if (each === plot || figure.dataset.x) draw(each);
      }
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const plot of plots) if (plot.view) draw(plot);
  });

  // --- tables ---

  const LEAST_ROWS = 12; // of a table that has a filter

  const valueOf = (text) => {
    const number = parseFloat(text.replace(/[\u202f\u2009, ]/g, "").replace("\u2212", "-").replace(/^±/, ""));
    return Number.isNaN(number) ? null : number;
  };

  const sort = (table, column, isNumeric) => {
    const head = table.tHead.rows[0].cells[column];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const side = descending ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map((row, place) => {
      const text = row.cells[column].textContent.trim();
      return { row, place, text, value: isNumeric ? valueOf(text) : null };
    });
    rows.sort((a, b) => {
      if (isNumeric) {
        if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
        return side * (a.value - b.value) || a.place - b.place;
      }
      return side * a.text.localeCompare(b.text, undefined, { numeric: true }) || a.place - b.place;
    });
    table.tBodies[0].append(...rows.map(({ row }) => row));
  };

  for (const table of document.querySelectorAll("main table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, column, head.classList.contains("number")));
    });
    if (table.tBodies[0].rows.length < LEAST_ROWS || table.tHead.rows[0].cells.length < 3) continue;
    const filter = Object.assign(document.createElement("input"), { type: "search", className: "filter" });
    filter.placeholder = "Filter rows";
    filter.setAttribute("aria-label", `Filter rows: ${table.caption?.textContent ?? "table"}`);
    const count = Object.assign(document.createElement("output"), { className: "note" });
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = [...table.tBodies[0].rows];
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = words.length ? ` ${shown} of ${rows.length} rows` : "";
    });
    table.parentElement.before(filter, count);
  }
})();
