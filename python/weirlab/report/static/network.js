// The picture of a network where scripts run: links coloured by what the reader asks for, a slider and a button
// that play what was recorded, and the numbers of a chosen link. Without it the drawing of the whole run stands.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEVELS = 8, UNKNOWN = 0xffff, QUEUE_LENGTH = 0.42, NEAR = 14;
  const TICK_MS = 90; // between steps while playing
  const measures = {
    utilisation: "utilisation",
    queue: "queue",
    drops: "drops",
    paused: "time held by flow control",
  };

  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const drawn = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const scaled = (value, ladder) => {
    const [size, unit] = ladder.find(([size]) => Math.abs(value) >= size) ?? ladder.at(-1);
    return `${Number((value / size).toPrecision(4))} ${unit}`;
  };
  const bytes = (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  const rate = (value) => scaled(value, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
  const time = (value) => scaled(value, [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]]);
  const share = (value) => `${value / 10} %`;
  const inWords = { utilisation: share, paused: share, queue: bytes, drops: (value) => `${value} frames` };

  const unpacked = async (data) => {
    const count = data.ends.length * (data.recorded?.length ?? 0);
    if (!count) return null;
    const packed = Uint8Array.from(atob(data.series), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const raw = await new Response(stream).arrayBuffer();
    return {
      row: new Map(data.recorded.map((port, row) => [port, row])),
      queue: new Uint32Array(raw, 0, count),
      drops: new Uint32Array(raw, 4 * count, count),
      utilisation: new Uint16Array(raw, 8 * count, count),
      paused: data.played ? new Uint16Array(raw, 10 * count, count) : null,
    };
  };

  const build = async (figure) => {
    const script = figure.querySelector("script");
    const data = JSON.parse(script.textContent);
    const series = await unpacked(data);
    const steps = series ? data.ends.length : 0;
    const name = (port) => data.names[port] ?? data.ports[port].map((node) => data.nodes[node]).join("->");
    const most = {};
    for (const what of Object.keys(measures)) most[what] = data[what].reduce((a, b) => Math.max(a, b), 0);
    most.drops_step = series ? series.drops.reduce((a, b) => Math.max(a, b), 0) : 0;
    let step = 0; // 0: the whole run
    // Congestion that spreads is seen in what flow control held; elsewhere in how busy links were.
    let measure = data.played && most.paused >= 100 ? "paused" : "utilisation";
    let chosen = null;
    let playing = null;

    // What a port did in the step; null where it has no series.
    const at = (port, what, when = step) => {
      if (when === 0 || (what === "paused" && !data.played)) return data[what][port];
      const row = series.row.get(port);
      if (row === undefined) return null;
      const cell = row * steps + when - 1;
      return series.utilisation[cell] === UNKNOWN ? null : series[what][cell];
    };
    const greatest = (ports, what) => {
      let found = null;
      for (const port of ports) {
        const value = at(port, what);
        if (value !== null && (found === null || value > found)) found = value;
      }
      return found;
    };
    const levelOf = (value) => {
      if (value === null) return "u";
      if (value === 0) return "c0";
      if (measure === "utilisation" || measure === "paused") return `c${Math.min(LEVELS, 1 + Math.floor((value * LEVELS) / 1000))}`;
      const top = measure === "drops" && step ? most.drops_step : most[measure];
      if (measure === "queue") return `c${Math.min(LEVELS, 1 + Math.floor((value * LEVELS) / top))}`;
      return `c${Math.min(LEVELS, 1 + Math.floor((Math.log1p(value) * (LEVELS - 1)) / Math.log1p(top)))}`;
    };

    // --- the parts of the page ---
    const place = made("div", { className: "plot" });
    const still = figure.querySelector("svg");
    const svg = still.cloneNode(true);
    svg.setAttribute("role", "group");
    const play = made("button", { type: "button", textContent: "Play" });
    const slider = made("input", { type: "range", min: 0, max: steps, value: 0, step: 1 });
    slider.setAttribute("aria-label", "Time");
    const clock = made("output", { textContent: "whole run" });
    const colour = made("select");
    for (const [what, words] of Object.entries(measures)) {
      if (most[what] || what === "utilisation") colour.append(made("option", { value: what, textContent: words }));
    }
    colour.value = measure;
    const links = made("select", {}, made("option", { value: "", textContent: "none" }));
    const controls = made("div", { className: "controls" });
    if (steps) controls.append(play, made("label", { className: "time" }, slider, clock));
    controls.append(made("label", {}, "Colour", colour), made("label", {}, "Link", links));
    const scale = made("div", { className: "scale" });
    const panel = made("div", { className: "link", hidden: true });
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", "Chosen link");
    panel.setAttribute("aria-live", "polite");
    const hosts = made("div", { className: "hosts", hidden: true });
    place.append(controls, svg, scale, panel, hosts);
    script.before(place);

    // --- links that can be coloured and chosen ---
    const lines = [];
    const addLine = (element, ports, words) => {
      const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((key) => parseFloat(element.getAttribute(key)));
      const line = { element, ports, words, x1, y1, x2, y2, bar: null, shown: "" };
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", words);
      element.setAttribute("tabindex", "-1");
      element.addEventListener("focus", () => choose(line));
      lines.push(line);
      return line;
    };
    for (const bar of svg.querySelectorAll(".bar")) bar.remove();
    const wholeNames = (drawnNode) => {
      const members = data.drawn[drawnNode];
      return members.length === 1 ? data.nodes[members[0]] : `${members.length} hosts ${data.nodes[members[0]]} to ${data.nodes[members.at(-1)]}`;
    };
    for (const element of svg.querySelectorAll("[data-e]")) {
      const [a, b, ...ports] = data.edges[element.dataset.e];
      const words = ports.length === 1 ? name(ports[0]) : `${wholeNames(a)} -> ${wholeNames(b)}`;
      const line = addLine(element, ports, words);
      line.folded = [a, b].find((node) => data.drawn[node].length > 1);
      links.append(made("option", { value: lines.length - 1, textContent: words }));
    }
    lines[0].element.setAttribute("tabindex", "0");

    const paint = (line) => {
      const found = levelOf(greatest(line.ports, measure));
      if (found !== line.shown) line.element.setAttribute("class", (line.shown = found));
      const queue = greatest(line.ports, "queue") ?? 0;
      if (!queue && !line.bar) return;
      const part = most.queue ? (QUEUE_LENGTH * queue) / most.queue : 0;
      if (!line.bar) {
        line.bar = drawn("line", { class: "bar", x1: line.x1, y1: line.y1 });
        line.element.ownerSVGElement.insertBefore(line.bar, line.element.ownerSVGElement.querySelector("[data-n]"));
      }
      line.bar.setAttribute("x2", line.x1 + part * (line.x2 - line.x1));
      line.bar.setAttribute("y2", line.y1 + part * (line.y2 - line.y1));
      line.bar.setAttribute("visibility", queue ? "visible" : "hidden");
    };

    const span = () => {
      if (!step) return "whole run";
      return `${step > 1 ? time(data.ends[step - 2]) : "0"} to ${time(data.ends[step - 1])}`;
    };

    const mark = drawn("line", { class: "chosen" });
    const describe = () => {
      panel.hidden = !chosen;
      if (!chosen) return;
      const busiest = chosen.ports.reduce((a, b) => ((at(b, measure) ?? -1) > (at(a, measure) ?? -1) ? b : a));
      const known = at(busiest, "utilisation") !== null;
      const facts = [rate(data.rates[busiest])];
      if (known) {
        facts.push(`${share(at(busiest, "utilisation"))} utilised`);
        facts.push(`longest queue ${bytes(at(busiest, "queue"))}`, `${at(busiest, "drops")} frames dropped`);
        if (most.paused && (!step || data.played)) facts.push(`${share(at(busiest, "paused"))} of the time held by flow control`);
      } else facts.push("not recorded over time");
      if (data.holds?.[busiest]) facts.push(data.holds[busiest]);
      const title = chosen.ports.length > 1 ? `${name(busiest)}, the first of ${chosen.words} by ${measures[measure]}` : chosen.words;
      panel.replaceChildren(made("p", {}, made("b", { textContent: title }), ` (${span()}): ${facts.join(", ")}.`));
      if (series?.row.has(busiest)) {
        panel.append(made("div", { className: "course" }, course(busiest, "utilisation"), course(busiest, "queue"), ...(data.played && data.paused[busiest] ? [course(busiest, "paused")] : [])));
      }
      if (chosen.folded !== undefined) {
        const more = made("button", { type: "button", textContent: `Show its ${data.drawn[chosen.folded].length} hosts` });
        more.addEventListener("click", () => expand(chosen?.folded));
        panel.append(made("div", { className: "controls" }, more));
      }
    };

    // The series of a port with the present step.
    const course = (port, what) => {
      const values = data.ends.map((_, k) => at(port, what, k + 1));
      const top = what === "utilisation" || what === "paused" ? 1000 : Math.max(1, ...values.map((value) => value ?? 0));
      const x = (k) => (100 * (k + 0.5)) / steps;
      let path = "", pen = "M";
      values.forEach((value, k) => {
        if (value === null) { pen = "M"; return; }
        path += `${pen}${x(k).toFixed(2)} ${(29 - (28 * Math.min(value, top)) / top).toFixed(2)}`;
        pen = "L";
      });
      const plot = drawn("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img" });
      plot.setAttribute("aria-label", `${measures[what]} of ${name(port)} over time, at most ${inWords[what](Math.max(...values))}`);
      plot.append(drawn("line", { class: "base", x1: 0, x2: 100, y1: 29, y2: 29 }), drawn("path", { d: path }));
      if (step) plot.append(drawn("line", { class: "now", x1: x(step - 1), x2: x(step - 1), y1: 0, y2: 30 }));
      const words = !Math.max(...values) ? `${measures[what]}: none at any time` : `${measures[what]}, axis to ${inWords[what](top)} and from 0 to ${time(data.ends.at(-1))}`;
      return made("div", {}, plot, made("span", { className: "note", textContent: words }));
    };

    const choose = (line) => {
      if (chosen === line) return;
      lines.find((each) => each.element.getAttribute("tabindex") === "0")?.element.setAttribute("tabindex", "-1");
      chosen = line;
      mark.remove();
      if (line) {
        line.element.setAttribute("tabindex", "0");
        for (const key of ["x1", "y1", "x2", "y2"]) mark.setAttribute(key, line[key]);
        line.element.ownerSVGElement.prepend(mark);
        links.value = line.element.ownerSVGElement === svg ? String(lines.indexOf(line)) : "";
      } else lines[0].element.setAttribute("tabindex", "0");
      describe();
    };

    const drawScale = () => {
      const bar = drawn("svg", { viewBox: "0 0 168 12", class: "network", "aria-hidden": "true" });
      for (let k = 1; k <= LEVELS; k++) bar.append(drawn("line", { class: `c${k}`, x1: 21 * (k - 1), x2: 21 * k, y1: 6, y2: 6, "stroke-width": 6 }));
      const top = measure === "drops" && step ? most.drops_step : most[measure];
      const [low, high] = measure === "utilisation" || measure === "paused" ? ["0 %", "100 %"] : ["0", `${inWords[measure](top)}${measure === "drops" ? ", logarithmic" : ""}`];
      const words = (text) => made("span", { textContent: text });
      scale.replaceChildren(words(measures[measure]), words(low), bar, words(high));
      if (most.queue) scale.append(words(`· longest bar: a queue of ${bytes(most.queue)}`));
      if (step && measure === "paused" && !data.played) scale.append(words("· of the whole run"));
      else if (step && data.recorded.length < data.ports.length) scale.append(words("· dashed: not recorded over time"));
    };

    const show = () => {
      for (const line of lines) paint(line);
      clock.textContent = span();
      slider.value = step;
      slider.setAttribute("aria-valuetext", span());
      describe();
    };

    // --- hosts of one switch ---
    const expand = (node) => {
      const members = data.drawn[node];
      const inside = new Set(members);
      const kept = lines.filter((line) => line.element.ownerSVGElement === svg);
      lines.splice(0, lines.length, ...kept);
      if (chosen && !lines.includes(chosen)) choose(null);
      const strip = drawn("svg", { viewBox: "0 0 900 130", class: "network", role: "group" });
      strip.setAttribute("aria-label", wholeNames(node));
      const x = new Map(members.map((host, k) => [host, 20 + (860 * (k + 0.5)) / members.length]));
      data.ports.forEach(([a, b], port) => {
        const host = inside.has(a) ? a : inside.has(b) ? b : null;
        if (host === null) return;
        const side = host === a ? 2 : -2;
        const ends = { x1: x.get(host) + side, x2: x.get(host) + side, y1: host === a ? 110 : 18, y2: host === a ? 18 : 110 };
        const line = drawn("line", ends);
        strip.append(line);
        addLine(line, [port], name(port));
      });
      strip.append(drawn("rect", { "data-n": "", class: "switch", x: 20, y: 8, width: 860, height: 10, rx: 2 }));
      for (const host of members) {
        const dot = drawn("circle", { class: data.kinds[node], cx: x.get(host), cy: 113, r: 5 });
        dot.append(Object.assign(drawn("title", {}), { textContent: data.nodes[host] }));
        strip.append(dot);
      }
      const close = made("button", { type: "button", textContent: "Close" });
      close.addEventListener("click", () => {
        if (chosen && chosen.element.ownerSVGElement === strip) choose(null);
        lines.splice(kept.length);
        hosts.hidden = true;
      });
      listen(strip);
      hosts.replaceChildren(made("p", {}, made("b", { textContent: `${wholeNames(node)} ` }), close), strip);
      hosts.hidden = false;
      show();
    };
    for (const element of svg.querySelectorAll("[data-n]")) {
      if (data.drawn[element.dataset.n].length < 2) continue;
      element.setAttribute("role", "button");
      element.setAttribute("tabindex", "-1");
      element.setAttribute("aria-label", `Show ${wholeNames(element.dataset.n)}`);
      element.addEventListener("click", (event) => {
        event.stopPropagation();
        expand(Number(element.dataset.n));
      });
    }

    // --- pointer and keys ---
    const nearest = (picture, event) => {
      const matrix = picture.getScreenCTM().inverse();
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
      let best = null, least = NEAR * matrix.a;
      for (const line of lines) {
        if (line.element.ownerSVGElement !== picture) continue;
        const dx = line.x2 - line.x1, dy = line.y2 - line.y1;
        const along = Math.max(0, Math.min(1, ((point.x - line.x1) * dx + (point.y - line.y1) * dy) / (dx * dx + dy * dy || 1)));
        const far = Math.hypot(point.x - line.x1 - along * dx, point.y - line.y1 - along * dy);
        if (far < least) [best, least] = [line, far];
      }
      return best;
    };
    const tooltip = document.querySelector(".tooltip");
    const listen = (picture) => {
      picture.addEventListener("click", (event) => choose(nearest(picture, event)));
      picture.addEventListener("pointermove", (event) => {
        const line = nearest(picture, event);
        tooltip.hidden = !line;
        if (!line) return;
        const value = greatest(line.ports, measure);
        tooltip.textContent = `${line.words}: ${value === null ? "not recorded" : inWords[measure](value)}`;
        const box = tooltip.getBoundingClientRect();
        tooltip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
        tooltip.style.top = `${Math.max(8, event.clientY - box.height - 10)}px`;
      });
      picture.addEventListener("pointerleave", () => { tooltip.hidden = true; });
      picture.addEventListener("keydown", (event) => {
        const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") choose(null);
        if (!move || !chosen) return;
        event.preventDefault();
        const own = lines.filter((line) => line.element.ownerSVGElement === picture);
        own[(own.indexOf(chosen) + move + own.length) % own.length].element.focus();
      });
    };
    listen(svg);
    // --- flows ---
    const ways = drawn("g", { "aria-hidden": "true" });
    const flowPanel = made("div", { className: "link", hidden: true });
    flowPanel.setAttribute("role", "region");
    flowPanel.setAttribute("aria-label", "Chosen flow");
    flowPanel.setAttribute("aria-live", "polite");
    const followed = (flow) => {
      ways.replaceChildren();
      flowPanel.hidden = !flow;
      if (!flow) return;
      for (const port of flow.ports) {
        const line = lines.find((each) => each.ports.includes(port));
        if (line) ways.append(drawn("line", { class: "way", x1: line.x1, y1: line.y1, x2: line.x2, y2: line.y2 }));
      }
      const facts = [`${flow.delivered} of ${flow.sent} frames delivered`, rate(flow.bps)];
      if (flow.dropped) facts.push(`${flow.dropped} dropped`);
      if (flow.delay !== null) facts.push(`${time(flow.delay)} on the way on average, ${time(flow.most)} at most`);
      const way = flow.ports.map(name).join(", ");
      flowPanel.replaceChildren(made("p", {}, made("b", { textContent: flow.name }), ` (whole run): ${facts.join(", ")}. Its way: ${way}.`));
      if (!flow.series) return;
      const top = Math.max(1, ...flow.series);
      const path = flow.series.map((value, k) => `${k ? "L" : "M"}${((100 * (k + 0.5)) / flow.series.length).toFixed(2)} ${(29 - (28 * value) / top).toFixed(2)}`).join("");
      const plot = drawn("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img" });
      plot.setAttribute("aria-label", `delivered rate of ${flow.name} over time, at most ${rate(top)}`);
      plot.append(drawn("line", { class: "base", x1: 0, x2: 100, y1: 29, y2: 29 }), drawn("path", { d: path }));
      const words = `delivered rate, axis to ${rate(top)}, over the whole run`;
      flowPanel.append(made("div", { className: "course" }, made("div", {}, plot, made("span", { className: "note", textContent: words }))));
    };
    if (data.flows?.length) {
      const flows = made("select", {}, made("option", { value: "", textContent: "none" }));
      for (const [number, flow] of data.flows.entries()) flows.append(made("option", { value: number, textContent: flow.name }));
      flows.addEventListener("change", () => followed(flows.value === "" ? null : data.flows[flows.value]));
      controls.append(made("label", {}, "Flow", flows));
      svg.prepend(ways);
      panel.after(flowPanel);
    }

    links.addEventListener("change", () => choose(links.value === "" ? null : lines[links.value]));
    colour.addEventListener("change", () => {
      measure = colour.value;
      drawScale();
      show();
    });

    // --- time ---
    const go = (to) => {
      const turns = !step !== !to;
      step = to;
      if (turns) drawScale();
      show();
    };
    const stop = () => {
      clearInterval(playing);
      playing = null;
      play.textContent = "Play";
      panel.setAttribute("aria-live", "polite");
    };
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    play.addEventListener("click", () => {
      if (playing) return stop();
      if (step === steps) go(1);
      play.textContent = "Pause";
      panel.setAttribute("aria-live", "off");
      playing = setInterval(() => {
        if (step === steps) return stop();
        go(step + 1);
      }, TICK_MS);
    });

    drawScale();
    show();
    figure.querySelector("figcaption").textContent = steps ? "Links and queues over time" : figure.querySelector("figcaption").textContent;
    figure.classList.add("lively");
  };

  for (const figure of document.querySelectorAll("figure[data-network]")) {
    build(figure).catch((error) => {
      figure.querySelector(".plot")?.remove();
      console.error(`network: ${error}`);
    });
  }
})();
