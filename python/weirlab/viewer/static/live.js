// A result while it grows: the server says that there is news, the page asks for it and draws it.
"use strict";
(() => {
  const live = document.getElementById("live");
  const by = (id) => document.getElementById(id);
  const roles = JSON.parse(by("roles").textContent);
  const SERIES = ["blue", "orange", "teal", "violet", "pink", "olive", "sky", "brown"];
  const color = (role) => getComputedStyle(document.documentElement).getPropertyValue(`--w-${role}`).trim() || roles[role];

  // --- charts ---

  const axis = (orient, scale, title, more) => ({
    orient, scale, title, grid: true, gridColor: color("grid"), domainColor: color("muted"), tickColor: color("muted"),
    labelColor: color("muted"), titleColor: color("ink"), titleFontWeight: 600, labelOverlap: true, ...more,
  });
  const base = (chart, marks, scales, axes, more) => ({
    $schema: "https://vega.github.io/schema/vega/v6.json",
    description: chart.title, width: 400, height: chart.kind === "heat" ? Math.min(420, Math.max(90, 30 * chart.upwards.length)) : 230,
    padding: 4, autosize: { type: chart.kind === "heat" ? "fit-x" : "fit", contains: "padding" }, background: "transparent",
    data: [{ name: "rows", values: [] }, { name: "bounds", values: [] }, ...(more?.data ?? [])],
    scales, axes, marks, legends: more?.legends ?? [],
  });
  const legend = (name) => [{ [name]: "color", orient: "top", columns: 3, labelColor: color("ink"), symbolStrokeWidth: 3, labelLimit: 220 }];
  const palette = () => SERIES.map(color);
  const colors = (data, field) => ({ name: "color", type: "ordinal", domain: { data, field, sort: false }, range: palette() });
  const tooltip = (fields) => ({ signal: `{${fields.map(([title, expr]) => `${JSON.stringify(title)}: ${expr}`).join(", ")}}` });
  const number = (field) => `format(datum[${JSON.stringify(field)}], '.5~g')`;
  const linear = (name, range, data, field, zero) => ({ name, type: "linear", range, nice: true, zero, domain: { data, field } });
  const isMany = (rows, field) => {
    const many = new Set(rows.map((row) => row[field])).size;
    return many > 1 && many <= SERIES.length;
  };

  const spec = (chart) => {
    const x = axis("bottom", "x", chart.x, { tickCount: 6 });
    const y = axis("left", "y", chart.y, { tickCount: 5 });
    const tip = tooltip([[chart.x, number("x")], [chart.y, number("y")], ["series", "datum.series"]]);
    const point = (data, shape) => ({
      type: "symbol", from: { data },
      encode: {
        enter: { size: { value: 46 }, strokeWidth: { value: 1.6 } },
        update: { x: { scale: "x", field: "x" }, y: { scale: "y", field: "y" }, tooltip: tip, ...shape },
      },
    });
    const stroke = { stroke: { scale: "color", field: "series" }, fill: { scale: "color", field: "series" } };
    if (chart.kind === "lines") {
      const marks = [{
        type: "group", from: { facet: { name: "one", data: "rows", groupby: "series" } },
        marks: [{ type: "line", from: { data: "one" }, encode: { update: { x: { scale: "x", field: "x" }, y: { scale: "y", field: "y" }, stroke: { scale: "color", field: "series" }, strokeWidth: { value: 1.8 } } } }],
      }, point("rows", { fill: { value: "transparent" }, size: { value: 90 } })];
      return base(chart, marks, [linear("x", "width", "rows", "x", false), linear("y", "height", "rows", "y", true), colors("rows", "series")], [x, y], { legends: isMany(chart.rows, "series") ? legend("stroke") : [] });
    }
    if (chart.kind === "bounds") {
      const step = (field) => ({
        type: "group", from: { facet: { name: `one_${field}`, data: "bounds", groupby: "series" } },
        marks: [{ type: "line", from: { data: `one_${field}` }, encode: { update: { x: { scale: "x", field: "x" }, y: { scale: "y", field }, defined: { signal: `isValid(datum.${field})` }, interpolate: { value: "step-after" }, stroke: { scale: "color", field: "series" }, strokeWidth: { value: 2.2 }, strokeDash: { value: field === "high" ? [5, 3] : [1, 0] } } } }],
      });
      const area = {
        type: "group", from: { facet: { name: "between", data: "bounds", groupby: "series" } },
        marks: [{ type: "area", from: { data: "between" }, encode: { update: { x: { scale: "x", field: "x" }, y: { scale: "y", field: "low" }, y2: { scale: "y", field: "high" }, defined: { signal: "isValid(datum.low) && isValid(datum.high)" }, interpolate: { value: "step-after" }, fill: { scale: "color", field: "series" }, fillOpacity: { value: 0.13 } } } }],
      };
      const shape = {
        shape: { signal: "datum.series === 'too much loss' ? 'cross' : 'circle'" },
        stroke: { signal: `datum.series === 'too much loss' ? '${color("bad")}' : '${color("good")}'` },
        fill: { value: "transparent" },
      };
      const scales = [
        linear("x", "width", "rows", "x", false),
        { name: "y", type: "linear", range: "height", nice: true, zero: false, domain: { fields: [{ data: "rows", field: "y" }, { data: "bounds", field: "low" }, { data: "bounds", field: "high" }] } },
        colors("bounds", "series"),
      ];
      return base(chart, [area, step("low"), step("high"), point("rows", shape)], scales, [x, y], { legends: legend("stroke") });
    }
    if (chart.kind === "heat") {
      const band = (name, range, domain) => ({ name, type: "band", range, domain, paddingInner: 0.06 });
      const values = chart.rows.map((row) => row.y).filter((value) => value !== null);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const marks = [
        { type: "rect", from: { data: "cells" }, encode: { update: { x: { scale: "x", field: "x" }, width: { scale: "x", band: 1 }, y: { scale: "y", field: "up" }, height: { scale: "y", band: 1 }, stroke: { value: color("grid") }, fill: { value: "transparent" } } } },
        { type: "rect", from: { data: "rows" }, encode: { update: { x: { scale: "x", field: "x" }, width: { scale: "x", band: 1 }, y: { scale: "y", field: "up" }, height: { scale: "y", band: 1 }, fill: { scale: "heat", field: "y" }, tooltip: tooltip([[chart.x, "datum.x"], [chart.up, "datum.up"], [chart.y, number("y")]]) } } },
      ];
      const cells = chart.across.flatMap((one) => chart.upwards.map((other) => ({ x: one, up: other })));
      const heat = { name: "heat", type: "linear", range: [color("shade"), color("blue")], domain: low < high ? [low, high] : [low - 1, high + 1] };
      const discrete = { grid: false };
      return base(chart, marks, [band("x", "width", chart.across), band("y", "height", [...chart.upwards].reverse()), heat],
        [axis("bottom", "x", chart.x, discrete), axis("left", "y", chart.up, { ...discrete, labelLimit: 120 })],
        { data: [{ name: "cells", values: cells }], legends: [{ fill: "heat", orient: "top", direction: "horizontal", title: chart.y, titleColor: color("ink"), labelColor: color("muted"), gradientLength: 160 }] });
    }
    const scales = chart.kind === "levels"
      ? [{ name: "x", type: "point", range: "width", domain: chart.across, padding: 0.4 }]
      : [linear("x", "width", "rows", "x", false)];
    const tips = chart.kind === "levels" ? { tooltip: tooltip([[chart.x, "datum.x"], [chart.y, number("y")], ["series", "datum.series"]]) } : {};
    return base(chart, [point("rows", { ...stroke, ...tips, fillOpacity: { value: 0.35 } })], [...scales, linear("y", "height", "rows", "y", true), colors("rows", "series")], [x, y], { legends: isMany(chart.rows, "series") ? legend("fill") : [] });
  };

  const tip = Object.assign(document.createElement("div"), { className: "tooltip", hidden: true });
  document.body.append(tip);
  const showTip = (handler, event, item, value) => {
    tip.hidden = value === undefined || value === null || value === "";
    if (tip.hidden) return;
    tip.replaceChildren(...Object.entries(value).map(([name, text]) => {
      const row = document.createElement("div");
      row.append(Object.assign(document.createElement("span"), { textContent: name }), Object.assign(document.createElement("b"), { textContent: text }));
      return row;
    }));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
    tip.style.top = `${Math.max(8, event.clientY - box.height - 10)}px`;
  };

  const views = new Map(); // what is drawn, by the place of its chart
  let chosen = "";

  const shownCharts = (charts) => {
    const choices = charts.filter((chart) => chart.choice);
    if (choices.length < 2) return charts;
    if (!choices.some((chart) => chart.choice === chosen)) chosen = choices[0].choice;
    return choices.filter((chart) => chart.choice === chosen);
  };

  const chooser = (charts) => {
    const names = charts.filter((chart) => chart.choice).map((chart) => chart.choice);
    let select = by("chooser");
    if (names.length < 2 || select?.dataset.names === names.join("\n")) return;
    select?.parentElement.remove();
    select = Object.assign(document.createElement("select"), { id: "chooser" });
    select.dataset.names = names.join("\n");
    select.append(...names.map((name) => Object.assign(document.createElement("option"), { textContent: name, value: name, selected: name === chosen })));
    select.addEventListener("change", () => { chosen = select.value; draw(last.charts); });
    const label = Object.assign(document.createElement("label"), { textContent: "Measure " });
    label.append(select);
    by("charts").before(label);
  };

  // One after the other: news, a new width and a choice may come at the same time.
  let drawing = Promise.resolve();
  const draw = (charts) => (drawing = drawing.then(() => drawAll(charts), () => drawAll(charts)));

  const drawAll = async (charts) => {
    const place = by("charts");
    chooser(charts);
    const shown = shownCharts(charts).filter((chart) => chart.rows.length);
    for (const [number, chart] of shown.entries()) {
      // Scales follow the data; whatever else a chart has makes it another one.
      const shape = JSON.stringify([chart.kind, chart.title, chart.x, chart.y, chart.across, isMany(chart.rows, "series"), chart.kind === "heat" && chart.rows]);
      let drawn = views.get(number);
      if (!drawn) {
        const figure = document.createElement("figure");
        figure.append(Object.assign(document.createElement("figcaption"), {}), Object.assign(document.createElement("div"), { className: "canvas" }));
        place.append(figure);
        drawn = { figure, view: null, shape: "" };
        views.set(number, drawn);
      }
      drawn.figure.querySelector("figcaption").textContent = chart.title;
      if (drawn.shape !== shape) {
        drawn.view?.finalize();
        drawn.shape = shape;
        const runtime = weirVega.parse(spec(chart), null, { ast: true });
        drawn.view = new weirVega.View(runtime, { expr: weirVega.expressionInterpreter, renderer: "svg", container: drawn.figure.querySelector(".canvas"), hover: true, tooltip: showTip });
      }
      drawn.view.width(Math.max(240, drawn.figure.clientWidth - 4));
      drawn.view.data("rows", chart.rows.map((row) => ({ ...row })));
      drawn.view.data("bounds", (chart.bounds ?? []).map((row) => ({ ...row })));
      await drawn.view.runAsync();
      const canvas = drawn.figure.querySelector(".canvas");
      canvas.querySelector("svg").setAttribute("aria-hidden", "true"); // one picture with a name
      canvas.setAttribute("role", "img");
      canvas.removeAttribute("aria-roledescription");
      canvas.setAttribute("aria-label", `${chart.title}: ${chart.y} over ${chart.x}`);
    }
    for (const [number, drawn] of views) {
      if (number < shown.length) continue;
      drawn.view?.finalize();
      drawn.figure.remove();
      views.delete(number);
    }
  };

  // --- news ---

  let last = null;
  let isBusy = false;
  let again = false;

  const show = async (state) => {
    last = state;
    by("status").textContent = state.status;
    by("status").className = `badge is-${state.status}`;
    by("sentence").textContent = state.sentence;
    by("remark").textContent = state.remark;
    const bar = by("progress");
    if (state.total) {
      bar.max = state.total;
      bar.value = state.done;
    } else if (!state.goes_on) bar.hidden = true;
    else bar.removeAttribute("value");
    by("times").textContent = [state.elapsed && `${state.elapsed} elapsed`, state.left && `about ${state.left} left`].filter(Boolean).join(", ");
    if (!state.goes_on) {
      by("stop")?.remove();
      by("report").textContent = "Report";
      by("report").hidden = state.status === "ended";
    }
    const table = by("newest");
    const cells = (tag, row) => row.map((text) => Object.assign(document.createElement(tag), { textContent: text, ...(tag === "th" ? { scope: "col" } : {}) }));
    const rowOf = (tag, row) => {
      const made = document.createElement("tr");
      made.append(...cells(tag, row));
      return made;
    };
    table.hidden = !state.table.rows.length;
    table.tHead.replaceChildren(rowOf("th", state.table.columns));
    table.tBodies[0].replaceChildren(...state.table.rows.map((row) => rowOf("td", row)));
    await draw(state.charts);
    live.dataset.done = state.done;
    live.dataset.shown = Date.now();
  };

  const ask = async () => {
    if (isBusy) {
      again = true;
      return;
    }
    isBusy = true;
    do {
      again = false;
      try {
        const reply = await fetch(live.dataset.state);
        if (!reply.ok) throw new Error((await reply.json()).error);
        await show(await reply.json());
        by("connection").textContent = "";
      } catch (error) {
        by("connection").textContent = `Not up to date: ${error.message}`;
      }
    } while (again);
    isBusy = false;
  };

  let events = null;
  const listen = () => {
    if (document.hidden) {
      events?.close();
      events = null;
      return;
    }
    if (events) return;
    events = new EventSource(live.dataset.events);
    events.addEventListener("result", ask);
    events.addEventListener("open", ask);
    events.addEventListener("beat", ask); // the time goes on where nothing else does
    events.addEventListener("error", () => { by("connection").textContent = "Not up to date: 'weir view' does not answer."; });
  };
  document.addEventListener("visibilitychange", listen);
  listen();

  let width = innerWidth;
  addEventListener("resize", () => {
    if (last && innerWidth !== width) draw(last.charts);
    width = innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const drawn of views.values()) drawn.shape = "";
    if (last) draw(last.charts);
  });

  by("stop")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.target.querySelector("button");
    const words = button.textContent;
    button.disabled = true;
    button.textContent = "Stopping …";
    let fault = "";
    try {
      const reply = await fetch(event.target.action, { method: "POST", body: new URLSearchParams(new FormData(event.target)), headers: { Accept: "application/json" } });
      if (!reply.ok) fault = (await reply.json()).error;
    } catch {
      fault = "'weir view' does not answer.";
    }
    if (fault) {
      by("connection").textContent = fault;
      button.disabled = false;
      button.textContent = words;
    }
  });
  document.body.dataset.ready = "";
})();
