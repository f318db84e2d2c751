// Time-sequence graphs of TCP where scripts run: marks on a canvas, a range that is dragged and zoomed, kinds that
// are shown and hidden, a step from one recovery to the next. Without it the drawing for paper stands.
"use strict";
(() => {
  const HEIGHT = 420, LEFT = 74, RIGHT = 12, TOP = 8, BOTTOM = 36, NEAR = 24, LEAST_NS = 200;
  const layers = [
    ["new", "data", "blue"],
    ["retransmitted", "sent again", "bad"],
    ["reordered", "came late", "orange"],
    ["duplicate", "came twice", "violet"],
    ["probe", "probe", "olive"],
    ["ack", "acknowledged", "teal"],
    ["window", "end of the window", "muted"],
    ["sack", "SACK", "pink"],
    ["duplicates", "duplicate ACK", "ink"],
  ];
  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const time = (ns, digits = 6) => {
    const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
    return `${Number((ns / size).toPrecision(digits))} ${unit}`;
  };
  const bytes = (count) => {
    const [size, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]].find(([size]) => Math.abs(count) >= size) ?? [1, "B"];
    return `${Number((count / size).toPrecision(6))} ${unit}`;
  };

  const unpacked = async (flow) => {
    const packed = Uint8Array.from(atob(flow.marks), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const raw = new Uint8Array(await new Response(stream).arrayBuffer());
    let place = 0;
    const column = (count, isStepped) => {
      const values = new Float64Array(count);
      let before = 0;
      for (let i = 0; i < count; i++) {
        let value = 0, weight = 1, byte;
        do {
          byte = raw[place++];
          value += (byte & 127) * weight;
          weight *= 128;
        } while (byte > 127);
        value = value % 2 ? -(value + 1) / 2 : value / 2;
        values[i] = isStepped ? (before += value) : value;
      }
      return values;
    };
    const [segments, acks, sacks] = flow.rows;
    const marks = (count, hasKinds) => {
      const from = column(count, true), low = column(count, true);
      const to = column(count), high = column(count);
      const kind = hasKinds ? column(count) : null;
      const many = column(count);
      for (let i = 0; i < count; i++) {
        to[i] += from[i];
        high[i] += low[i];
      }
      return { from, to, low, high, kind, many, count };
    };
    const data = marks(segments, true);
    const at = column(acks, true), ack = column(acks, true);
    const edgeLow = column(acks), edgeHigh = column(acks), duplicates = column(acks);
    for (let i = 0; i < acks; i++) {
      if (edgeLow[i] < 0) edgeLow[i] = edgeHigh[i] = NaN;
      else edgeHigh[i] += edgeLow[i] += ack[i];
    }
    return { data, acks: { at, ack, edgeLow, edgeHigh, duplicates, count: acks }, sacks: marks(sacks, false) };
  };

  // The first place whose value is not below.
  const search = (values, value) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const ticks = (from, to, most) => {
    const rough = (to - from) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const found = [];
    for (let value = Math.ceil(from / step) * step; value <= to; value += step) found.push(value);
    return found;
  };

  const build = async (figure) => {
    const script = figure.querySelector("script");
    const data = JSON.parse(script.textContent);
    const shown = new Set(layers.map(([name]) => name));
    let flow = null, marks = null, range = null, whole = null, rows = null, pointer = null, recovery = -1, isFar = false;

    const canvas = made("canvas", { tabIndex: 0 });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Bytes of ${data.flows[0].name} over time`); // until its marks are unpacked
    const choice = made("select");
    for (const [place, each] of data.flows.entries()) choice.append(made("option", { value: place, textContent: each.name }));
    const all = made("button", { type: "button", textContent: "Whole" });
    const next = made("button", { type: "button", textContent: "Next recovery" });
    const controls = made("div", { className: "controls" });
    const wide = made("label", { className: "wide" }, "Connection", choice);
    controls.append(wide, all, next);
    const legend = made("div", { className: "scale legend" });
    const said = made("p", { className: "note said" });
    said.setAttribute("role", "status");
    const place = made("div", { className: "plot" }, controls, legend, canvas, said);
    script.before(place);

    const fitRows = () => {
      // The least and most of what lies in the range, and what was acknowledged then.
      const { data: sent, acks } = marks;
      let low = Infinity, high = -Infinity;
      const first = search(sent.from, range[0] - marks.longest), last = search(sent.from, range[1]);
      for (let i = first; i < last; i++) {
        if (sent.to[i] < range[0]) continue;
        if (sent.low[i] < low) low = sent.low[i];
        if (sent.high[i] > high) high = sent.high[i];
      }
      const before = Math.max(0, search(acks.at, range[0]) - 1), after = search(acks.at, range[1]);
      for (let i = before; i < after; i++) {
        if (shown.has("ack") && acks.ack[i] < low && i > before) low = acks.ack[i];
        if (shown.has("ack") && acks.ack[i] > high) high = acks.ack[i];
      }
      // A window that is far away says that it limits nothing, and may lie outside.
      let edge = Infinity, edgeMost = -Infinity;
      for (let i = before; i < after && shown.has("window"); i++) {
        if (acks.edgeLow[i] < edge) edge = acks.edgeLow[i];
        if (acks.edgeHigh[i] > edgeMost) edgeMost = acks.edgeHigh[i];
      }
      isFar = edgeMost > high && !(edge < high + 0.25 * (high - low));
      if (edgeMost > high && !isFar) high = edgeMost;
      if (!(low < high)) [low, high] = low === Infinity ? [0, 1] : [low - 1, high + 1];
      rows = [low - 0.03 * (high - low), high + 0.05 * (high - low)];
    };

    const width = () => canvas.clientWidth - LEFT - RIGHT;
    const x = (ns) => LEFT + ((ns - range[0]) / (range[1] - range[0])) * width();
    const y = (count) => TOP + (1 - (count - rows[0]) / (rows[1] - rows[0])) * (HEIGHT - TOP - BOTTOM);

    const draw = () => {
      const colors = getComputedStyle(document.documentElement);
      const color = (role) => colors.getPropertyValue(`--w-${role}`).trim();
      const scale = devicePixelRatio || 1;
      const total = canvas.clientWidth;
      if (!total || !marks) return;
      if (canvas.width !== Math.round(total * scale)) canvas.width = Math.round(total * scale);
      if (canvas.height !== HEIGHT * scale) canvas.height = HEIGHT * scale;
      const pen = canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, total, HEIGHT);
      pen.font = "12px system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif";
      pen.lineWidth = 1;
      const bottom = HEIGHT - BOTTOM;
      const [timeSize, timeUnit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([size]) => range[1] - range[0] >= 0.4 * size) ?? [1e3, "µs"];
      const top = Math.max(Math.abs(rows[0]), Math.abs(rows[1]));
      const [rowSize, rowUnit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([size]) => top >= size) ?? [1, "B"];
      const label = (value, size, step) => (value / size).toFixed(Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9))));
      pen.strokeStyle = color("grid");
      pen.fillStyle = color("muted");
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      const levels = ticks(rows[0], rows[1], 6).filter((value) => value >= 0);
      for (const value of levels) {
        pen.beginPath();
        pen.moveTo(LEFT, Math.round(y(value)) + 0.5);
        pen.lineTo(total - RIGHT, Math.round(y(value)) + 0.5);
        pen.stroke();
        pen.fillText(label(value, rowSize, levels[1] - levels[0] || rowSize), LEFT - 6, y(value));
      }
      pen.textBaseline = "top";
      pen.textAlign = "center";
      const times = ticks(range[0], range[1], Math.max(2, width() / 90));
      for (const value of times) {
        const text = label(value, timeSize, times[1] - times[0] || timeSize);
        const half = pen.measureText(text).width / 2;
        pen.fillText(text, Math.min(Math.max(x(value), LEFT + half), total - half), bottom + 6);
      }
      pen.fillStyle = color("ink");
      pen.fillText(`time [${timeUnit}]`, LEFT + width() / 2, bottom + 21);
      pen.save();
      pen.translate(12, TOP + (bottom - TOP) / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText(`bytes of the stream [${rowUnit}]`, 0, -6);
      pen.restore();
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, TOP, width(), bottom - TOP);
      pen.clip();

      const { data: sent, acks, sacks } = marks;
      const start = search(sent.from, range[0] - marks.longest), end = search(sent.from, range[1] + 1);
      const crowd = (end - start) / Math.max(1, width());
      const thick = crowd < 0.1 ? 3 : crowd < 0.5 ? 2 : 1.2;
      if (shown.has("sack")) {
        pen.strokeStyle = color("pink");
        pen.globalAlpha = 0.6;
        pen.lineWidth = 1;
        pen.beginPath();
        for (let i = search(sacks.from, range[0] - marks.longest); i < sacks.count && sacks.from[i] <= range[1]; i++) {
          pen.moveTo(x(sacks.from[i]), y(sacks.low[i]));
          pen.lineTo(x(sacks.to[i]), y(sacks.high[i]));
        }
        pen.stroke();
        pen.globalAlpha = 1;
      }
      const first = Math.max(0, search(acks.at, range[0]) - 1), last = Math.min(acks.count, search(acks.at, range[1]) + 1);
      const steps = (value, role, dash) => {
        pen.strokeStyle = color(role);
        pen.lineWidth = 1.4;
        pen.setLineDash(dash);
        pen.beginPath();
        let before = NaN;
        for (let i = first; i < last; i++) {
          const now = value[i];
          if (!Number.isNaN(now)) {
            if (Number.isNaN(before)) pen.moveTo(x(acks.at[i]), y(now));
            else pen.lineTo(x(acks.at[i]), y(before));
            pen.lineTo(x(acks.at[i]), y(now));
          }
          before = now;
        }
        if (last === acks.count && !Number.isNaN(before)) pen.lineTo(x(Math.min(range[1], whole[1])), y(before));
        pen.stroke();
        pen.setLineDash([]);
      };
      if (shown.has("window")) {
        steps(acks.edgeHigh, "muted", [5, 3]);
        if (marks.step) steps(acks.edgeLow, "muted", [1, 3]);
      }
      if (shown.has("ack")) steps(acks.ack, "teal", []);
      if (shown.has("duplicates")) {
        pen.strokeStyle = color("ink");
        pen.lineWidth = 1;
        pen.beginPath();
        for (let i = first; i < last; i++) {
          if (!acks.duplicates[i]) continue;
          const [left, row] = [x(acks.at[i]), y(acks.ack[i])];
          pen.moveTo(left, row + 1);
          pen.lineTo(left, row + (crowd < 3 ? 7 : 3));
        }
        pen.stroke();
      }
      for (const [name, , role] of layers.slice(0, 5)) {
        const kind = data.kinds.indexOf(name);
        if (kind < 0 || !shown.has(name)) continue;
        pen.strokeStyle = color(role);
        pen.lineWidth = name === "new" ? thick : Math.max(2, thick);
        pen.beginPath();
        for (let i = start; i < end; i++) {
          if (sent.kind[i] !== kind || sent.to[i] < range[0]) continue;
          const [left, right, low] = [x(sent.from[i]), x(sent.to[i]), y(sent.low[i])];
          const high = Math.min(y(sent.high[i]), low - (name === "new" ? 1 : 2.5)); // of one segment something is always seen
          pen.moveTo(left, low);
          pen.lineTo(right, high);
        }
        pen.stroke();
      }
      if (pointer) {
        pen.strokeStyle = color("muted");
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(pointer.x, TOP);
        pen.lineTo(pointer.x, bottom);
        pen.stroke();
      }
      pen.restore();
    };

    // What the pointer is at, in words.
    const tell = () => {
      if (!pointer) {
        said.textContent = `Drag to move, + and − (or the wheel, after a click) to zoom, double-click for the whole; the arrow keys move.${isFar ? " The end of the window lies above." : ""}`;
        return;
      }
      const now = range[0] + ((pointer.x - LEFT) / width()) * (range[1] - range[0]);
      const { data: sent, acks } = marks;
      let best = -1, least = NEAR * NEAR;
      const reach = (NEAR / width()) * (range[1] - range[0]);
      for (let i = search(sent.from, now - reach - marks.longest); i < sent.count && sent.from[i] <= now + reach; i++) {
        if (!shown.has(data.kinds[sent.kind[i]])) continue;
        const [left, right, low, high] = [x(sent.from[i]), x(sent.to[i]), y(sent.low[i]), y(sent.high[i])];
        const dx = Math.max(left - pointer.x, 0, pointer.x - right), dy = Math.max(high - pointer.y, 0, pointer.y - low);
        const distance = dx * dx + dy * dy - (sent.kind[i] ? 1 : 0);
        if (distance < least) [best, least] = [i, distance];
      }
      const words = [`at ${time(now, 9)}`];
      const i = search(acks.at, now) - 1;
      if (i >= 0) {
        words.push(`acknowledged up to ${bytes(acks.ack[i])}`);
        const highest = marks.highest[Math.max(0, search(sent.from, now) - 1)];
        if (highest > acks.ack[i]) words.push(`${bytes(highest - acks.ack[i])} in flight`);
        if (!Number.isNaN(acks.edgeHigh[i])) words.push(`window open for ${bytes(Math.max(0, acks.edgeHigh[i] - highest))} more`);
      }
      if (best >= 0) {
        const kind = layers.find(([name]) => name === data.kinds[sent.kind[best]])?.[1] ?? data.kinds[sent.kind[best]];
        const many = sent.many[best] > 1 ? `${sent.many[best]} segments, ` : "";
        words.push(`${kind}: ${many}bytes ${sent.low[best].toLocaleString("en")} to ${sent.high[best].toLocaleString("en")}, sent at ${time(sent.from[best], 9)}`);
      }
      said.textContent = `${words.join("; ")}.`;
    };

    let isAsked = false;
    const redraw = () => {
      if (isAsked) return;
      isAsked = true;
      requestAnimationFrame(() => {
        isAsked = false;
        fitRows();
        draw();
        tell();
        figure.dataset.range = `${Math.round(range[0])} ${Math.round(range[1])}`;
      });
    };
    const show = (from, to) => {
      const length = Math.min(Math.max(to - from, LEAST_NS), whole[1] - whole[0]);
      const start = Math.min(Math.max(from, whole[0]), whole[1] - length);
      range = [start, start + length];
      redraw();
    };
    const zoom = (factor, at) => show(at - (at - range[0]) * factor, at + (range[1] - at) * factor);
    const choose = async (number) => {
      flow = data.flows[number];
      marks = await unpacked(flow);
      marks.step = flow.step;
      const { data: sent, acks } = marks;
      marks.longest = 0;
      marks.highest = new Float64Array(sent.count);
      let highest = 0, last = 0;
      for (let i = 0; i < sent.count; i++) {
        marks.longest = Math.max(marks.longest, sent.to[i] - sent.from[i]);
        marks.highest[i] = highest = Math.max(highest, sent.high[i]);
        last = Math.max(last, sent.to[i]);
      }
      const ends = [sent.from[0], last];
      if (acks.count) ends.push(acks.at[0], acks.at[acks.count - 1]);
      const [from, to] = [Math.min(...ends), Math.max(...ends)];
      whole = [from, Math.max(to, from + LEAST_NS)];
      recovery = -1;
      next.disabled = flow.recoveries.length === 0;
      const counts = layers.map(([name]) => {
        if (name === "ack" || name === "window") return acks.count && (name === "ack" || acks.edgeHigh.some((edge) => edge > 0));
        if (name === "sack") return marks.sacks.many.reduce((a, b) => a + b, 0);
        if (name === "duplicates") return acks.duplicates.reduce((a, b) => a + b, 0);
        const kind = data.kinds.indexOf(name);
        let count = 0;
        for (let i = 0; i < sent.count; i++) if (sent.kind[i] === kind) count += sent.many[i];
        return count;
      });
      legend.replaceChildren(...layers.flatMap(([name, words, role], place) => {
        if (!counts[place]) return [];
        const box = made("input", { type: "checkbox", checked: shown.has(name) });
        box.addEventListener("change", () => {
          if (box.checked) shown.add(name);
          else shown.delete(name);
          redraw();
        });
        const mark = made("span", { className: "mark" });
        mark.style.background = `var(--w-${role})`;
        const count = typeof counts[place] === "number" && place !== 5 ? ` ${counts[place].toLocaleString("en")}` : "";
        return [made("label", {}, box, mark, `${words}${count}`)];
      }));
      const again = counts[1] ? `, ${counts[1]} segments sent again` : "";
      canvas.setAttribute("aria-label", `Bytes of ${flow.name} over time: ${counts[0].toLocaleString("en")} segments of data${again}. Arrow keys move, plus and minus zoom.`);
      figure.dataset.flow = flow.name;
      show(...whole);
    };

    choice.addEventListener("change", () => choose(Number(choice.value)));
    all.addEventListener("click", () => show(...whole));
    next.addEventListener("click", () => {
      recovery = (recovery + 1) % flow.recoveries.length;
      const [from, to, again] = flow.recoveries[recovery];
      const length = Math.max(to - from, 1e6);
      show(from - 0.3 * length, to + 0.3 * length);
      next.textContent = `Next recovery (${recovery + 1} of ${flow.recoveries.length}: ${again} sent again)`;
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      const at = range[0] + ((event.offsetX - LEFT) / width()) * (range[1] - range[0]);
      zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, at);
    }, { passive: false });
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus();
      held = { x: event.offsetX, range: [...range] };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      pointer = { x: event.offsetX, y: event.offsetY };
      if (held) {
        const moved = ((held.x - event.offsetX) / width()) * (held.range[1] - held.range[0]);
        show(held.range[0] + moved, held.range[1] + moved);
      } else redraw();
    });
    canvas.addEventListener("pointerup", () => (held = null));
    canvas.addEventListener("pointerleave", () => {
      pointer = null;
      redraw();
    });
    canvas.addEventListener("dblclick", () => show(...whole));
    canvas.addEventListener("keydown", (event) => {
      const length = range[1] - range[0], middle = (range[0] + range[1]) / 2;
      const acts = {
        ArrowLeft: () => show(range[0] - length / 5, range[1] - length / 5),
        ArrowRight: () => show(range[0] + length / 5, range[1] + length / 5),
        "+": () => zoom(1 / 1.5, middle),
        "=": () => zoom(1 / 1.5, middle),
        "-": () => zoom(1.5, middle),
        Home: () => show(...whole),
      };
      if (!acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    });
    new ResizeObserver(() => marks && redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => marks && redraw());
    figure.classList.add("lively");
    await choose(0);
  };

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      build(entry.target).catch((error) => {
        entry.target.classList.remove("lively");
        console.error(`time-sequence graph: ${error}`);
      });
    }
  }, { rootMargin: "400px" });
  for (const figure of document.querySelectorAll("figure[data-sequence]")) seen.observe(figure);
})();
