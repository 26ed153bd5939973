"use strict";
(async () => {
  const by = id => document.getElementById(id);
  const text = atob(by("data").textContent), packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(plain).arrayBuffer());
  const size = new DataView(bytes.buffer).getUint32(0, true);
  const { length, opened, steps, looks, rows, left_out, unit } = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  let at = 4 + size;
  const number = () => {
    let value = 0, factor = 1, byte;
    do { byte = bytes[at++]; value += (byte & 127) * factor; factor *= 128; } while (byte > 127);
    return value;
  };
  for (const row of rows) {
    row.begin = new Float64Array(row.marks); row.len = new Float64Array(row.marks); row.look = new Uint32Array(row.marks);
    row.longest = 0;
    for (let i = 0, now = 0; i < row.marks; i++) row.begin[i] = now += number() * unit;
    for (let i = 0; i < row.marks; i++) row.longest = Math.max(row.longest, row.len[i] = number() * unit);
    for (let i = 0; i < row.marks; i++) row.look[i] = number();
  }
  const GUTTER = 150, LINE = 18, STRIP = steps.length > 1 ? 40 : 0, TOP = STRIP + 20;
  const canvas = by("plot"), pen = canvas.getContext("2d"), light = matchMedia("(prefers-color-scheme: light)");
  const view = { from: opened[0], len: Math.max(opened[1], 64) };
  let chosen = null, found = null, width = 0;
  const color = look => "#" + looks[look].colors[+light.matches].toString(16).padStart(6, "0");
  const style = name => getComputedStyle(document.body).getPropertyValue(name);
  const time = ns => {
    const [of, unit] = Math.abs(ns) >= 1e9 ? [1e9, "s"] : Math.abs(ns) >= 1e6 ? [1e6, "ms"] : Math.abs(ns) >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return +(ns / of).toPrecision(4) + " " + unit;
  };
  const plot = () => width - GUTTER, x = ns => GUTTER + (ns - view.from) / view.len * plot(), ns = x => view.from + (x - GUTTER) / plot() * view.len;
  // The first mark that may reach into the view: marks are in the order of their begins, and may lie in each other.
  const first = (row, from) => {
    let low = 0, high = row.marks;
    for (const least = from - row.longest; low < high;) { const mid = low + high >> 1; row.begin[mid] < least ? low = mid + 1 : high = mid; }
    return low;
  };
  const show = (from, len) => {
    view.len = Math.min(Math.max(len, 64), length || 64);
    view.from = Math.min(Math.max(from, 0), length - view.len);
    requestAnimationFrame(draw);
  };
  const axis = () => {
    let step = 10 ** Math.floor(Math.log10(view.len / 4));
    while (view.len / step > 9) step *= step.toString().startsWith("2") ? 2.5 : 2;
    pen.fillStyle = style("--dim");
    for (let tick = Math.ceil(view.from / step) * step; tick <= view.from + view.len; tick += step) {
      pen.fillRect(x(tick), TOP - 4, 1, 4);
      pen.fillText(time(tick), x(tick) + 3, TOP - 8);
    }
    pen.fillText(time(view.len) + " of " + time(length), 0, TOP - 8);
  };
  const strip = () => {
    if (!STRIP) return;
    const most = steps.reduce((most, step) => Math.max(most, step[1]), 1);
    const wide = Math.max(1, plot() / steps.length - 1);
    steps.forEach(([from, len, odd], i) => {
      const high = Math.max(2, len / most * (STRIP - 8)), here = from < view.from + view.len && from + len > view.from;
      pen.fillStyle = odd ? "#c0392b" : here ? style("--ink") : style("--dim");
      pen.fillRect(GUTTER + i * plot() / steps.length, STRIP - 4 - high, wide, high);
    });
    pen.fillStyle = style("--dim");
    pen.fillText(steps.length + " steps", 0, STRIP - 8);
  };
  const bar = (row, i, left, right, y) => {
    const look = row.look[i], is = chosen && chosen.row === row && chosen.i === i;
    pen.globalAlpha = found && !found.has(look) ? .2 : row.kind === "gpu" && !is ? .6 : 1;
    pen.fillStyle = color(look);
    pen.fillRect(left, y + 2, Math.max(right - left, 1), LINE - 4);
    if (is) { pen.strokeStyle = style("--ink"); pen.strokeRect(left, y + 1.5, right - left, LINE - 3); }
    const name = looks[look].short, room = right - Math.max(left, GUTTER) - 6, letters = Math.floor(room / 6.2);
    if (letters > 3) {
      pen.fillStyle = row.kind === "gpu" ? style("--ink") : "#14171b";
      pen.fillText(name.length <= letters ? name : name.slice(0, letters - 1) + "…", Math.max(left, GUTTER) + 3, y + 13);
    }
    pen.globalAlpha = 1;
  };
  // Of marks within one pixel the longest is drawn; of idle time the part of the pixel that it takes.
  const marks = (row, y) => {
    let pixel = -1, best = -1, sum = 0;
    const end = view.from + view.len, each = view.len / plot();
    const flush = () => {
      if (best >= 0 && row.kind === "gpu") {
        const high = (LINE - 4) * Math.min(1, sum / each);
        pen.fillStyle = style("--ground"); pen.fillRect(pixel, y + 2, 1, high);
        pen.globalAlpha = .6; pen.fillStyle = color(row.look[best]); pen.fillRect(pixel, y + 2, 1, high); pen.globalAlpha = 1;
      } else if (best >= 0) bar(row, best, pixel, pixel + 1, y);
      best = -1; sum = 0;
    };
    for (let i = first(row, view.from); i < row.marks && row.begin[i] < end; i++) {
      if (row.begin[i] + row.len[i] <= view.from) continue;
      const left = Math.max(x(row.begin[i]), GUTTER), right = Math.min(x(row.begin[i] + row.len[i]), width);
      if (right - left > 1.5) { flush(); bar(row, i, left, right, y); continue; }
      if (Math.floor(left) !== pixel) { flush(); pixel = Math.floor(left); }
      if (best < 0 || row.len[i] > row.len[best]) best = i;
      sum += row.len[i];
    }
    flush();
  };
  const draw = () => {
    const scale = devicePixelRatio || 1;
    width = canvas.clientWidth;
    const high = TOP + rows.length * LINE + 4;
    canvas.style.height = high + "px"; canvas.width = width * scale; canvas.height = high * scale;
    pen.scale(scale, scale);
    pen.font = "11px system-ui,sans-serif";
    strip(); axis();
    rows.forEach((row, i) => {
      const y = TOP + i * LINE;
      pen.fillStyle = style(row.kind === "title" ? "--dim" : "--ink");
      pen.fillText(row.label.slice(0, row.kind === "title" ? 200 : 24), 0, y + 13);
      if (row.kind === "gpu" && row.used) {
        const left = Math.max(x(row.used[0]), GUTTER), right = Math.min(x(row.used[0] + row.used[1]), width);
        pen.fillStyle = "#4f9e6f";
        if (right > left) pen.fillRect(left, y + 2, right - left, LINE - 4);
        // Idle time stands on the ground of the page, in the colour of its cause.
        pen.fillStyle = style("--ground");
        for (let k = first(row, view.from); k < row.marks && row.begin[k] < view.from + view.len; k++) {
          const from = Math.max(x(row.begin[k]), GUTTER), to = Math.min(x(row.begin[k] + row.len[k]), width);
          if (to - from > 1.5) pen.fillRect(from, y + 2, to - from, LINE - 4);
        }
      }
      marks(row, y);
    });
  };
  const say = () => {
    const { row, i } = chosen, look = looks[row.look[i]];
    by("said").textContent = `${look.whole || look.short} · ${time(row.len[i])} · from ${time(row.begin[i])} · ${row.label}`;
  };
  const under = event => {
    const box = canvas.getBoundingClientRect(), at = ns(event.clientX - box.left), near = view.len / plot() * 2;
    const row = rows[Math.floor((event.clientY - box.top - TOP) / LINE)];
    let best = null;
    if (row) for (let i = first(row, at - near); i < row.marks && row.begin[i] <= at + near; i++)
      if (row.begin[i] + row.len[i] >= at - near && (!best || row.len[i] < row.len[best.i])) best = { row, i };
    return best;
  };
  const step = by => {
    const middle = view.from + view.len / 2, here = steps.findIndex(([from, len]) => from <= middle && middle < from + len);
    const next = steps[here < 0 ? 0 : here + by];
    if (next) show(next[0], next[1]);
  };
  const longest = () => {
    let best = null;
    for (const row of rows) if (row.kind === "gpu") for (let i = first(row, view.from); i < row.marks && row.begin[i] < view.from + view.len; i++)
      if (row.begin[i] >= view.from && (!best || row.len[i] > best.row.len[best.i])) best = { row, i };
    if (best) { chosen = best; say(); show(best.row.begin[best.i] - best.row.len[best.i] / 4, best.row.len[best.i] * 1.5); }
  };
  const zoom = (at, factor) => show(at - (at - view.from) * factor, view.len * factor), middle = () => view.from + view.len / 2;
  const keys = {
    ArrowLeft: () => show(view.from - view.len / 5, view.len), ArrowRight: () => show(view.from + view.len / 5, view.len),
    "+": () => zoom(middle(), .6), "-": () => zoom(middle(), 1 / .6), "=": () => zoom(middle(), .6), "0": () => show(0, length),
    "[": () => step(-1), "]": () => step(1), L: longest, "/": () => by("find").focus(),
    Escape: () => { chosen = null; by("said").textContent = ""; draw(); },
  };
  canvas.addEventListener("keydown", event => {
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
  });
  canvas.addEventListener("wheel", event => {
    const left = event.clientX - canvas.getBoundingClientRect().left;
    if (left < GUTTER) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) show(view.from + (event.deltaX || event.deltaY) / plot() * view.len, view.len);
    else zoom(ns(left), 1.002 ** event.deltaY);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", event => { held = { x: event.clientX, from: view.from, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => {
    if (!held) { const mark = under(event); canvas.title = mark ? looks[mark.row.look[mark.i]].short + " · " + time(mark.row.len[mark.i]) : ""; return; }
    held.moved ||= Math.abs(event.clientX - held.x) > 3;
    if (held.moved) show(held.from - (event.clientX - held.x) / plot() * view.len, view.len);
  });
  canvas.addEventListener("pointerup", event => {
    const box = canvas.getBoundingClientRect(), moved = held && held.moved;
    held = null;
    if (moved) return;
    if (STRIP && event.clientY - box.top < STRIP) {
      const one = steps[Math.floor((event.clientX - box.left - GUTTER) / plot() * steps.length)];
      if (one) show(one[0], one[1]);
      return;
    }
    chosen = under(event);
    if (chosen) say(); else by("said").textContent = "";
    draw();
  });
  canvas.addEventListener("dblclick", event => {
    const mark = under(event);
    if (mark) show(mark.row.begin[mark.i] - mark.row.len[mark.i] / 4, mark.row.len[mark.i] * 1.5);
  });
  by("find").addEventListener("input", event => {
    const word = event.target.value.toLowerCase();
    found = word ? new Set(looks.flatMap((look, i) => (look.whole || look.short).toLowerCase().includes(word) ? [i] : [])) : null;
    let count = 0, sum = 0;
    if (found) for (const row of rows) for (let i = 0; i < row.marks; i++) if (found.has(row.look[i])) { count++; sum += row.len[i]; }
    by("said").textContent = found ? `${count} bars, ${time(sum)} in all` : "";
    draw();
  });
  by("keys").textContent = "wheel zooms · drag moves · click names · double click fills the width · keys: ← → + − · 0 all" + (STRIP ? " · [ ] steps" : "") + " · L longest gap · / find"
    + (left_out ? ` · ${left_out} short calls and ranges are not drawn` : "") + (unit > 1 ? ` · times of bars are rounded to ${unit} ns` : "");
  by("timeline").hidden = false; by("picture").style.display = "none";
  addEventListener("resize", draw); light.addEventListener("change", draw);
  show(view.from, view.len);
})();
