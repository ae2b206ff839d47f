(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.words;
  const STAGES = ["vit", "prefill", "decode", "job"];
  const PATHS = ["genie", "qnn", "bypass"];
  const SLICES = ["acquire", "run", "evict", "restore"];
  const TINTS = { vit: 1, prefill: 0.6, decode: 0.32, job: 0.8 };
  const NEVER = -1;
  const ROW = 28, BAR = 20, GAP = 14, AXIS = 26;
  const $ = (id) => document.getElementById(id);
  const root = $("timeline"), view = $("view"), overview = $("overview"), picked = $("picked");
  const looks = [...document.querySelectorAll(".look")];
  const unpacked = new Map();
  let run = null, key = "", from = 0, until = 1, rank = -1, chosen = -1, colours = {}, tip = null;

  // --- unpacking ------------------------------------------------------------------------------------------------

  async function integers(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const view = new DataView(buffer), out = new Int32Array(buffer.byteLength / 4);
    for (let i = 0; i < out.length; i++) out[i] = view.getInt32(4 * i, true);
    return out;
  }

  function instants(raw, rows) {
    const at = (column, row) => raw[column * rows + row];
    const made = Array.from({ length: 6 }, () => new Float64Array(rows));
    let called = 0;
    for (let row = 0; row < rows; row++) {
      called += at(0, row);
      made[0][row] = called;
      let before = called;
      for (let k = 1; k < 6; k++) {
        const step = at(k, row);
        made[k][row] = step === 0 ? NEVER : before + step - 1;
        if (step !== 0) before = made[k][row];
      }
    }
    return made;
  }

  async function unpack(name) {
    if (unpacked.has(name)) return unpacked.get(name);
    const given = data.runs[name], rows = given.rows;
    const raw = await integers(given.columns), cut = await integers(given.slices);
    const [called, granted, submitted, started, finished, returned] = instants(raw, rows);
    const column = (k) => raw.subarray((6 + k) * rows, (7 + k) * rows);
    const made = {
      ...given, called, granted, submitted, started, finished, returned,
      client: column(0), stage: column(1), core: column(2), path: column(3), request: column(4), token: column(5),
      width: column(6), cuts: new Map(), last: new Float64Array(rows),
    };
    const count = cut.length / 4;
    let start = 0;
    for (let i = 0; i < count; i++) {
      start += cut[2 * count + i];
      const row = cut[i], list = made.cuts.get(row) || [];
      list.push({ kind: SLICES[cut[count + i]], start, end: start + cut[3 * count + i] });
      made.cuts.set(row, list);
    }
    for (const list of made.cuts.values()) list.sort((a, b) => a.start - b.start);
    made.end = given.window[1];
    let last = 0;
    for (let row = 0; row < rows; row++) {
      last = Math.max(last, returned[row] === NEVER ? made.end : returned[row]);
      made.last[row] = last;
    }
    unpacked.set(name, made);
    return made;
  }

  // --- colours --------------------------------------------------------------------------------------------------

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    colours = { clients: [] };
    for (let i = 0; i < 7; i++) colours.clients.push(read(`--c${i}`));
    for (const name of ["paper", "sheet", "ink", "soft", "rule", "accent", "guard", "guard-dot", "device", "evicted", "worse"]) colours[name] = read(`--${name}`);
    colours.dots = pattern(colours.guard, (c) => { c.fillStyle = colours["guard-dot"]; c.fillRect(1, 1, 1.6, 1.6); c.fillRect(4, 4, 1.6, 1.6); });
    colours.tints = colours.clients.map((one) => Object.fromEntries(STAGES.map((s) => [s, mix(one, colours.paper, TINTS[s])])));
    colours.hatched = colours.clients.map((one) => pattern(one, (c) => {
      c.strokeStyle = colours.paper; c.lineWidth = 1; c.beginPath();
      for (const x of [-6, 0, 6]) { c.moveTo(x, 6); c.lineTo(x + 6, 0); }
      c.stroke();
    }));
  }

  function pattern(ground, paint) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const c = tile.getContext("2d");
    c.fillStyle = ground;
    c.fillRect(0, 0, 6, 6);
    paint(c);
    return c.createPattern(tile, "repeat");
  }

  function mix(one, other, share) {
    const parse = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    const [a, b] = [parse(one), parse(other)];
    return `rgb(${a.map((v, i) => Math.round(share * v + (1 - share) * b[i])).join(" ")})`;
  }

  const fillOf = (client, stage, wide) => stage === "vit" && wide ? colours.hatched[client % 7] : colours.tints[client % 7][stage];

  // --- drawing --------------------------------------------------------------------------------------------------

  function labelWidth() {
    return view.clientWidth < 560 ? 58 : 92;
  }

  function rowTop(index) {
    return 8 + index * ROW + (index >= run.cores ? GAP : 0);
  }

  function fit(canvas, height) {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const c = canvas.getContext("2d");
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    return c;
  }

  function firstRow(time) {
    let low = 0, high = run.rows;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (run.last[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  function stretches(row) {
    if (run.started[row] === NEVER) return [];
    return run.cuts.get(row) || [{ kind: "run", start: run.started[row], end: run.finished[row] === NEVER ? run.end : run.finished[row] }];
  }

  function draw() {
    if (!run) return;
    const rows = run.cores + run.clients.length, height = 8 + rows * ROW + GAP + AXIS;
    const c = fit(view, height), left = labelWidth(), width = view.clientWidth - left - 2;
    const scale = width / (until - from), x = (time) => left + (time - from) * scale;
    drawRows(c, left, width, rows);
    c.save();
    c.beginPath();
    c.rect(left, 0, width, height);
    c.clip();
    drawGrid(c, x, left, width, height);
    const bar = (index, start, end, fill) => {
      const a = Math.max(x(start), left - 2), b = Math.min(x(end), left + width + 2);
      if (b < left || a > left + width) return;
      c.fillStyle = fill;
      const gap = b - a > 4 ? 1 : 0;
      c.fillRect(a, rowTop(index) + (ROW - BAR) / 2, Math.max(b - a - gap, 0.6), BAR);
    };
    for (const [client, start, end] of run.loads) if (end > from && start < until) bar(run.cores + client, start, end, colours.rule);
    for (let row = firstRow(from); row < run.rows && run.called[row] < until; row++) drawCall(row, bar, scale);
    drawChosen(c, x, height);
    c.restore();
    root.dataset.from = from;
    root.dataset.until = until;
    root.dataset.rank = rank;
    root.dataset.chosen = chosen;
    drawOverview();
  }

  function drawRows(c, left, width, rows) {
    c.font = "13px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (let i = 0; i < rows; i++) {
      const top = rowTop(i), client = i - run.cores;
      c.fillStyle = colours.sheet;
      c.fillRect(left, top + (ROW - BAR) / 2, width, BAR);
      c.fillStyle = client < 0 ? colours.ink : colours.clients[client % 7];
      c.font = client < 0 ? "13px system-ui, sans-serif" : "600 13px system-ui, sans-serif";
      c.fillText(client < 0 ? `${words.core} ${i}` : run.clients[client], 6, top + ROW / 2, left - 10);
    }
    c.strokeStyle = colours.soft;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(0, rowTop(run.cores) - GAP / 2);
    c.lineTo(left + width, rowTop(run.cores) - GAP / 2);
    c.stroke();
  }

  function drawGrid(c, x, left, width, height) {
    const least = (until - from) * 85 / width, power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= least);
    const digits = Math.max(0, -Math.floor(Math.log10(step / 1e6) + 1e-9));
    c.font = "12px system-ui, sans-serif";
    c.textAlign = "center";
    for (let time = Math.ceil(from / step) * step; time <= until; time += step) {
      c.fillStyle = colours.rule;
      c.fillRect(x(time), 4, 1, height - AXIS - 4);
      c.fillStyle = colours.soft;
      if (x(time) > left + 22 && x(time) < left + width - 26) c.fillText(`${(time / 1e6).toFixed(digits)} s`, x(time), height - AXIS / 2);
    }
    c.textAlign = "left";
  }

  function drawCall(row, bar, scale) {
    const client = run.client[row], stage = STAGES[run.stage[row]], thread = run.cores + client, end = run.end;
    const granted = run.granted[row] === NEVER ? end : run.granted[row];
    if (granted > run.called[row]) bar(thread, run.called[row], granted, (granted - run.called[row]) * scale > 4 ? colours.dots : colours.guard);
    if (run.submitted[row] === NEVER) return;
    const started = run.started[row] === NEVER ? end : run.started[row];
    if (started > run.submitted[row]) bar(thread, run.submitted[row], started, colours.device);
    let before = NEVER;
    for (const one of stretches(row)) {
      if (before !== NEVER && one.start > before) bar(thread, before, one.start, colours.device);
      before = one.end;
      const moving = one.kind === "evict" || one.kind === "restore";
      const fill = moving ? colours.evicted : fillOf(client, stage, (one.end - one.start) * scale > 5);
      bar(thread, one.start, one.end, fill);
      for (let k = 0; k < run.width[row]; k++) bar(run.core[row] + k, one.start, one.end, fill);
    }
  }

  function drawChosen(c, x, height) {
    let start, end, index;
    if (rank >= 0) {
      ({ start, end } = run.slow[rank]);
      index = run.cores + run.clients.indexOf(run.slow[rank].client);
    } else if (chosen >= 0) {
      [start, end] = [run.called[chosen], run.returned[chosen] === NEVER ? run.end : run.returned[chosen]];
      index = run.cores + run.client[chosen];
    } else return;
    c.strokeStyle = colours.worse;
    c.lineWidth = 2.5;
    c.strokeRect(x(start) - 1, rowTop(index) + 1, x(end) - x(start) + 2, ROW - 2);
    c.setLineDash([4, 4]);
    c.lineWidth = 1.2;
    c.beginPath();
    for (const time of [start, end]) { c.moveTo(x(time), 2); c.lineTo(x(time), height - AXIS); }
    c.stroke();
    c.setLineDash([]);
  }

  function drawOverview() {
    const height = 44, c = fit(overview, height), left = labelWidth(), width = overview.clientWidth - left - 2;
    const x = (time) => left + time / run.end * width;
    c.fillStyle = colours.sheet;
    c.fillRect(left, 14, width, height - 16);
    const tall = (height - 16) / run.cores;
    const done = new Float64Array(run.cores).fill(-1);
    for (let row = 0; row < run.rows; row++) {
      const core = run.core[row], vit = run.stage[row] === 0;
      for (const one of stretches(row)) {
        const a = x(one.start), b = x(one.end);
        if (!vit && b < done[core] + 0.5) continue;
        done[core] = Math.max(done[core], b);
        c.fillStyle = colours.tints[run.client[row] % 7][vit ? "vit" : "decode"];
        c.fillRect(a, 14 + core * tall + 1, Math.max(b - a, vit ? 1.5 : 0.5), tall - 2);
      }
    }
    c.fillStyle = colours.worse;
    run.slow.forEach((one, i) => {
      const at = x(one.end), big = i === rank ? 6 : 4;
      c.beginPath();
      c.moveTo(at - big, 12 - 2 * big); c.lineTo(at + big, 12 - 2 * big); c.lineTo(at, 13); c.fill();
    });
    c.strokeStyle = colours.ink;
    c.lineWidth = 2;
    c.strokeRect(x(from), 13, Math.max(x(until) - x(from), 3), height - 14);
    c.fillStyle = colours.soft;
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillText(words.whole, 6, 30, left - 10);
  }

  function drawLegend() {
    const stages = new Set(run.stage), paint = { guard: colours.dots, device: colours.device, evicted: colours.evicted, load: colours.rule };
    for (const item of $("timeline-legend").children) {
      const kind = item.dataset.kind, stage = STAGES.indexOf(kind);
      item.hidden = stage >= 0 ? !stages.has(stage) : kind === "evicted" && run.cuts.size === 0;
      item.style.display = item.hidden ? "none" : "";
      const c = item.firstChild.getContext("2d");
      c.fillStyle = stage >= 0 ? fillOf(0, kind, true) : paint[kind];
      c.fillRect(0, 0, 28, 14);
    }
  }

  // --- moving ---------------------------------------------------------------------------------------------------

  function show(start, end) {
    const whole = run.end, length = Math.min(Math.max(end - start, 50), whole);
    from = Math.min(Math.max(start, 0), whole - length);
    until = from + length;
    draw();
  }

  function zoom(factor, at = (from + until) / 2) {
    const length = Math.min(Math.max((until - from) * factor, 50), run.end);
    show(at - (at - from) / (until - from) * length, at - (at - from) / (until - from) * length + length);
  }

  function timeAt(event, canvas, start, end) {
    const box = canvas.getBoundingClientRect(), left = labelWidth();
    return start + (event.clientX - box.left - left) / (box.width - left - 2) * (end - start);
  }

  function callAt(event) {
    const box = view.getBoundingClientRect(), y = event.clientY - box.top, time = timeAt(event, view, from, until);
    const rows = run.cores + run.clients.length;
    const index = Array.from({ length: rows }, (_, i) => i).find((i) => y >= rowTop(i) && y < rowTop(i) + ROW);
    if (index === undefined || time < from) return -1;
    for (let row = firstRow(time); row < run.rows && run.called[row] <= time; row++) {
      if (index >= run.cores) {
        const end = run.returned[row] === NEVER ? run.end : run.returned[row];
        if (run.client[row] === index - run.cores && time <= end) return row;
      } else if (run.core[row] <= index && index < run.core[row] + run.width[row]) {
        if (stretches(row).some((one) => one.start <= time && time <= one.end)) return row;
      }
    }
    return -1;
  }

  // --- saying ---------------------------------------------------------------------------------------------------

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    return made;
  }

  const put = (text, values) => text.replace(/\[(\w+)\]/g, (_, name) => values[name]);
  const ms = (us) => (us / 1000).toFixed(us < 1000 ? 3 : 1);
  const nameOf = (row) => `${run.clients[run.client[row]]} ${words[`stage.${STAGES[run.stage[row]]}`]}`;

  function tell(title, said, more) {
    picked.replaceChildren(element("h4", title), element("p", said), ...more);
    $("said").textContent = `${title}. ${said}`;
  }

  function pickSlow(index) {
    if (!run.slow.length) { picked.replaceChildren(element("p", words.none)); return; }
    rank = Math.min(Math.max(index, 0), run.slow.length - 1);
    chosen = -1;
    const one = run.slow[rank], length = one.end - one.start, room = Math.max(0.6 * length, 250000);
    show(one.start - room, one.end + room);
    tell(one.title, one.said, [strip(one), breakdown(one)]);
  }

  function strip(one) {
    const made = element("div", undefined, { class: "parts", "aria-hidden": "true" });
    for (const part of one.parts) {
      const cell = element("i", undefined, { title: `${part.what}: ${part.ms} ms` }), at = run.clients.indexOf(part.client);
      cell.style.flex = `${part.share} 0 0`;
      cell.style.background = part.own ? "var(--soft)" : at < 0 ? "var(--device)" : `var(--c${at % 7})`;
      made.append(cell);
    }
    return made;
  }

  function breakdown(one) {
    const table = element("table"), head = element("tr"), body = element("tbody");
    table.append(element("caption", words.parts, { class: "hidden" }));
    for (const title of [words.what, words.whose]) head.append(element("th", title, { scope: "col" }));
    for (const unit of ["ms", "%"]) head.append(element("th", unit, { scope: "col", class: "number" }));
    for (const title of [words.through, words.path]) head.append(element("th", title, { scope: "col" }));
    const top = element("thead");
    top.append(head);
    for (const part of one.parts) {
      const row = element("tr");
      row.append(element("th", part.what, { scope: "row" }), element("td", part.whose));
      row.append(element("td", part.ms, { class: "number" }), element("td", part.share, { class: "number" }));
      row.append(element("td", part.through || "-"), element("td", part.path || "-"));
      body.append(row);
    }
    const last = element("tr");
    last.append(element("th", words.all, { scope: "row" }), element("td", ""));
    last.append(element("td", one.total, { class: "number" }), element("td", "100.0", { class: "number" }), element("td", ""), element("td", ""));
    body.append(last);
    table.append(top, body);
    const box = element("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": words.parts });
    box.append(table);
    return box;
  }

  function waits(row) {
    const said = [], over = (a, b) => run[b][row] !== NEVER ? run[b][row] - run[a][row] : run.end - run[a][row];
    if (over("called", "granted") > 0) said.push(put(words.guard_wait, { ms: ms(over("called", "granted")) }));
    if (run.submitted[row] !== NEVER && over("submitted", "started") > 0) said.push(put(words.device_wait, { ms: ms(over("submitted", "started")) }));
    if (run.started[row] !== NEVER) said.push(put(words.ran, { ms: ms(over("started", "finished")) }));
    return said.join(words.comma);
  }

  function pickCall(row) {
    rank = -1;
    chosen = row;
    draw();
    const title = put(words.call, { name: nameOf(row), request: run.request[row], core: run.core[row], path: words[`path.${PATHS[run.path[row]]}`] });
    const token = run.token[row] >= 0 ? put(words.token, { token: run.token[row] }) : "";
    tell(title + token, put(words.called, { at: (run.called[row] / 1e6).toFixed(6) }) + waits(row), []);
  }

  function hover(event) {
    const row = run ? callAt(event) : -1;
    if (row < 0) { tip?.remove(); tip = null; return; }
    if (!tip) { tip = element("div", undefined, { class: "tip", "aria-hidden": "true" }); document.body.append(tip); }
    tip.textContent = `${nameOf(row)}: ${waits(row)}`;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - 310))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  }

  // --- the page -------------------------------------------------------------------------------------------------

  async function choose(name) {
    key = name;
    const made = await unpack(name);
    if (key !== name) return;
    run = made;
    for (const look of looks) look.hidden = look.dataset.run !== name;
    rank = chosen = -1;
    for (const id of ["slowest", "slower", "faster"]) $(id).disabled = !run.slow.length;
    readColours();
    drawLegend();
    if (run.slow.length) pickSlow(0); else { show(run.window[0], run.window[0] + 2e6); picked.replaceChildren(element("p", words.none)); }
    root.dataset.run = name;
  }

  function repaint() {
    readColours();
    if (run) { drawLegend(); draw(); }
  }

  const slowest = () => pickSlow(0);
  const next = (step) => pickSlow(rank < 0 ? 0 : rank + step);
  const pan = (share) => show(from + share * (until - from), until + share * (until - from));
  const clicks = {
    slowest, slower: () => next(-1), faster: () => next(1), "zoom-in": () => zoom(0.5), "zoom-out": () => zoom(2),
    whole: () => show(0, run.end),
  };
  for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", () => run && act());
  const keys = {
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
    0: () => show(0, run.end), s: slowest, n: () => next(1), p: () => next(-1),
    "[": () => step(-1), "]": () => step(1),
  };

  function step(way) {
    if (chosen < 0) { if (firstRow(from) < run.rows) pickCall(firstRow(from)); return; }
    let row = chosen + way;
    while (row >= 0 && row < run.rows && run.client[row] !== run.client[chosen]) row += way;
    if (row < 0 || row >= run.rows) return;
    pickCall(row);
    if (run.called[row] < from || run.called[row] > until) pan((run.called[row] - (from + until) / 2) / (until - from));
  }

  view.addEventListener("keydown", (event) => {
    if (!run || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  view.addEventListener("wheel", (event) => {
    if (!run || !(event.ctrlKey || event.metaKey || document.activeElement === view)) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event, view, from, until));
  }, { passive: false });

  const fingers = new Map();
  let moved = 0;
  view.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event.clientX); moved = 0; view.setPointerCapture(event.pointerId); });
  view.addEventListener("pointermove", (event) => {
    if (!run) return;
    if (!fingers.has(event.pointerId)) { hover(event); return; }
    const was = [...fingers.values()], dx = event.clientX - fingers.get(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    const now = [...fingers.values()];
    moved += Math.abs(dx);
    if (now.length === 2) zoom(Math.max(Math.abs(was[0] - was[1]), 8) / Math.max(Math.abs(now[0] - now[1]), 8));
    else if (moved > 3) pan(-dx / (view.clientWidth - labelWidth()));
  });
  const lift = (event) => {
    if (run && event.type === "pointerup" && moved <= 3 && fingers.size === 1) { const row = callAt(event); if (row >= 0) pickCall(row); }
    fingers.delete(event.pointerId);
  };
  view.addEventListener("pointerup", lift);
  view.addEventListener("pointercancel", lift);
  view.addEventListener("pointerleave", () => { tip?.remove(); tip = null; });
  view.addEventListener("dblclick", (event) => run && zoom(0.5, timeAt(event, view, from, until)));
  const center = (event) => { if (run && event.buttons) { const at = timeAt(event, overview, 0, run.end), half = (until - from) / 2; show(at - half, at + half); } };
  overview.addEventListener("pointerdown", center);
  overview.addEventListener("pointermove", center);

  for (const button of document.querySelectorAll(".show")) button.addEventListener("click", () => {
    if (!run) return;
    pickSlow(Number(button.dataset.slow));
    root.scrollIntoView({ block: "start" });
    view.focus({ preventScroll: true });
  });
  $("which")?.addEventListener("change", (event) => choose(event.target.value));
  new ResizeObserver(() => draw()).observe(view.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  const opened = [];
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    for (const one of document.querySelectorAll("#decision details:not([open])")) { one.open = true; opened.push(one); }
    repaint();
  });
  window.addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    for (const one of opened.splice(0)) one.open = false;
    repaint();
  });

  if (typeof DecompressionStream === "undefined") { picked.textContent = words.old_browser; return; }
  choose(looks[0].dataset.run).then(() => { root.dataset.ready = "yes"; });
})();
