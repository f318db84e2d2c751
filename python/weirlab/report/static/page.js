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

  // --- points of long series to look closer at ---

  const unpacked = async ({ names, counts, base, step, packed }) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const raw = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
    let at = 0;
    const column = (Kind, count) => {
      const found = new Kind(raw, at, count);
      at += found.byteLength;
      return found;
    };
    const ends = counts.map((count) => {
      let end = 0;
      return column(Float64Array, count).map((length) => (end += length));
    });
    const lines = new Map(names.map((name, place) => [name, { base, step, ends: ends[place] }]));
    for (const part of ["mean", "low", "high"]) names.forEach((name, place) => { lines.get(name)[part] = column(Uint16Array, counts[place]); });
    return lines;
  };

  const after = (ends, time) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const CLOSE = 640; // points of a line between the ends of what is looked at
  const closer = (name, { base, step: unit, ends, mean, low, high }, from, to) => {
    const [first, last] = [after(ends, from), Math.min(ends.length - 1, after(ends, to))];
    const step = Math.ceil((last - first + 1) / CLOSE);
    const rows = [];
    for (let start = first; start <= last; start += step) {
      const end = Math.min(last, start + step - 1);
      let [sum, least, most] = [0, Infinity, 0];
      for (let i = start; i <= end; i++) {
        sum += mean[i] * (ends[i] - (i ? ends[i - 1] : 0));
        least = Math.min(least, low[i]);
        most = Math.max(most, high[i]);
      }
      const value = (count) => base + count * unit;
      rows.push({ name, t: ends[end], mean: value(sum / (ends[end] - (start ? ends[start - 1] : 0))), low: value(least), high: value(most) });
    }
    return rows;
  };

  // Between the ends of the range stand finer points, outside of them those of the whole plot.
  const refine = async (plot, range) => {
    if (!plot.closer) return;
    plot.lines ??= unpacked(plot.closer);
    const [view, lines] = [plot.view, await plot.lines];
    if (view !== plot.view) return;
    for (const { name: source, values } of plot.spec.data) {
      if (!values?.length || !("high" in values[0])) continue;
      let rows = values;
      if (range) {
        const [from, to] = range;
        rows = [...Map.groupBy(values, (row) => row.name)].flatMap(([name, drawn]) => {
          const [left, right] = [drawn.filter((row) => row.t < from), drawn.filter((row) => row.t > to)];
          return [...left, ...closer(name, lines.get(name), from, to), ...right];
        });
      }
      view.data(source, rows.map((row) => ({ ...row })));
    }
    await view.runAsync();
  };

  const draw = async (plot) => {
    plot.view?.finalize();
    const spec = painted(plot.text);
    spec.background = "transparent";
    plot.spec = spec;
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
    for (const name of plot.ranges) {
      plot.view.addSignalListener(name, (signal, range) => {
        shareRange(plot, name, range);
        clearTimeout(plot.timer);
        plot.timer = setTimeout(() => refine(plot, range), 120);
      });
    }
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
    const { vega, closer } = JSON.parse(data.textContent);
    plots.push({ figure, place, text: JSON.stringify(vega), closer, view: null, ranges: [], widths: [] });
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

  // Cells of one column may have units of their own.
  const PREFIXES = { p: 1e-12, n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const UNIT = /[\s\d]([pnµmkMGT]?)(?:s|B|bit\/s|frames?\/s)(?![\w/])/;
  const valueOf = (text) => {
    const number = parseFloat(text.replace(/[\u202f\u2009, ]/g, "").replace("\u2212", "-").replace(/^[±<>≤≥]+/, ""));
    return Number.isNaN(number) ? null : number * (PREFIXES[UNIT.exec(text)?.[1]] ?? 1);
  };

  const QUANTITY = /^[-\d.]+[\s\u202f]*(?:[pnµmkMGT]?(?:s|B|bit\/s|frames?\/s))?$/;
  const sort = (table, column) => {
    const texts = [...table.tBodies[0].rows].map((row) => row.cells[column].textContent.trim());
    // Levels of factors are texts; those that are all quantities are ordered as such.
    const isNumeric = table.tHead.rows[0].cells[column].classList.contains("number") || texts.every((text) => QUANTITY.test(text));
    const head = table.tHead.rows[0].cells[column];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const side = descending ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map((row, place) => {
      const text = texts[place];
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

  const FOLDED = 15; // rows of a table that is folded where its cells stand one below the other

  for (const table of document.querySelectorAll("main table")) {
    const many = table.tBodies[0].rows.length;
    if (!table.tHead || many < 2) continue;
    if (many > FOLDED && table.classList.contains("stack")) {
      table.classList.add("folded");
      const more = Object.assign(document.createElement("button"), { type: "button", className: "more", textContent: `Show all ${many} rows` });
      more.addEventListener("click", () => {
        table.classList.remove("folded");
        more.remove();
      });
      table.parentElement.after(more);
    }
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, column));
    });
    if (table.tBodies[0].rows.length < LEAST_ROWS || table.tHead.rows[0].cells.length < 3) continue;
    const filter = Object.assign(document.createElement("input"), { type: "search", className: "filter" });
    filter.placeholder = "Filter rows";
    filter.setAttribute("aria-label", `Filter rows: ${table.caption?.textContent ?? "table"}`);
    const count = Object.assign(document.createElement("output"), { className: "note" });
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      table.parentElement.nextElementSibling?.matches(".more") && table.parentElement.nextElementSibling.click();
      const rows = [...table.tBodies[0].rows];
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      count.textContent = words.length ? ` ${shown} of ${rows.length} rows` : "";
    });
    if (table.caption) table.caption.append(filter, count);
    else table.parentElement.before(filter, count);
  }
})();
