// The pictures of a few statements: columns of words with lines between them. Everything in them can be
// reached with the keyboard, and their words are text.
const words = (list) => [...new Set(list.map((n) => texts.predicate[row.predicate[n]]))].join(", ");

// In a narrow window the columns of statements stand below each other, and beside them the names that
// they are of.
const stacked = (columns, links, high) => {
  const list = { share: 0.36, room: 0.62, align: "start", nodes: [], tops: [] };
  for (const node of columns.flatMap((c) => c.nodes)) {
    if (node.pill) continue;
    list.tops.push(20 + (list.nodes.length + 0.5) * high);
    list.nodes.push(node);
  }
  const names = { share: 0, room: 0.32, align: "start", nodes: columns.flatMap((c) => c.nodes.filter((n) => n.pill)), tops: [] };
  const place = new Map(list.nodes.map((node, n) => [node.id, list.tops[n]]));
  let lowest = 0;
  for (const { id } of names.nodes) {
    const near = links.flatMap(({ from, to }) => (from === id ? [to] : to === id ? [from] : [])).map((end) => place.get(end)).filter(Boolean);
    const y = near.reduce((a, b) => a + b, 0) / (near.length || 1);
    names.tops.push((lowest = Math.max(y, lowest + 1.7 * high)));
  }
  return [list, names];
};

// Draw columns side by side: each {align, share, nodes}, a node {id, label, lead, tone, rows, pill};
// `links` are {from, to, tone, wide, dashed}. `share` is where the column stands, 0 to 1.
const layered = (columns, links, describe) => {
  const box = by("picture"), width = Math.max(300, box.clientWidth), narrow = width < 640;
  const size = narrow ? 12 : width > 1800 ? 17 : 14, high = Math.round(size * (narrow ? 1.75 : 1.85));
  const font = `${size}px ${FONT}`, bold = `600 ${Math.round(size * 1.15)}px ${FONT}`;
  const tall = columns.map((c) => (narrow && c.nodes[0]?.pill ? 0 : c.nodes.length));
  const most = Math.max(1, narrow ? tall.reduce((a, b) => a + b, 0) : Math.max(...tall)), height = Math.max(narrow ? 120 : 220, most * high + 40);
  const { ink, soft, card, accent, page } = colours();
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": describe });
  const lines = svg("g", { fill: "none" }), marks = svg("g");
  const places = new Map();
  for (const column of narrow ? stacked(columns, links, high) : columns) {
    const x = 12 + column.share * (width - 24), total = column.nodes.length * high;
    column.nodes.forEach((node, n) => {
      const y = column.tops?.[n] ?? (height - total) / 2 + (n + 0.5) * high;
      const room = Math.max(40, column.room * width - 16);
      const mark = svg("g", { tabindex: 0, role: "button", class: `node${node.pill ? " pill" : ""}`, "aria-label": plain(node.told) });
      const spread = node.pill ? 24 : 0;
      const lead = node.lead ? `${fitting(node.lead, room * 0.5, font)} ` : "";
      const label = fitting(node.label, room - spread - (lead ? widthOf(lead, font) : 0), node.pill ? bold : font);
      const wide = widthOf(label, node.pill ? bold : font) + (lead ? widthOf(lead, font) : 0);
      const left = column.align === "start" ? x : column.align === "end" ? x - wide - spread : x - wide / 2 - spread / 2;
      if (node.pill) {
        const w = wide + spread, r = high * 0.62;
        mark.append(svg("rect", { x: left, y: y - r, width: w, height: 2 * r, rx: r, fill: card, stroke: node.tone ?? accent, "stroke-width": 2 }));
      } else mark.append(svg("rect", { x: left - 4, y: y - high / 2 + 1, width: wide + 8, height: high - 2, rx: 4, class: "hit", fill: page }));
      const line = svg("text", { x: left + spread / 2, y, "dominant-baseline": "central", "font-size": node.pill ? Math.round(size * 1.15) : size, class: "said" });
      if (lead) line.append(svg("tspan", { fill: soft }, lead));
      line.append(svg("tspan", { fill: ink, "font-weight": node.pill ? 600 : 400 }, label));
      mark.dataset.key = node.id;
      mark.append(svg("title", {}, plain(node.told)), line);
      mark.addEventListener("click", () => node.open());
      mark.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        node.open();
      });
      marks.append(mark);
      places.set(node.id, { y, left: left - 7, right: left + wide + spread + 7 });
    });
  }
  for (const link of links) {
    const a = places.get(link.from), b = places.get(link.to);
    const forth = a.left + a.right < b.left + b.right;
    const x1 = forth ? a.right - 6 : a.left + 6, x2 = forth ? b.left : b.right, bend = (x2 - x1) * 0.5;
    lines.append(svg("path", { d: `M${x1.toFixed(1)} ${a.y.toFixed(1)}C${(x1 + bend).toFixed(1)} ${a.y.toFixed(1)} ${(x2 - bend).toFixed(1)} ${b.y.toFixed(1)} ${x2.toFixed(1)} ${b.y.toFixed(1)}`, stroke: link.tone, "stroke-width": link.wide, "stroke-opacity": 0.75, "stroke-linecap": "round", ...(link.dashed ? { "stroke-dasharray": "5 4" } : {}) }));
  }
  picture.append(lines, marks);
  const focused = box.contains(document.activeElement) ? document.activeElement : null;
  box.replaceChildren(picture);
  if (focused) nodeOf(focused)?.focus({ preventScroll: true });
};
// What stands in the picture now for something of the one before.
const nodeOf = ({ dataset }) => [...document.querySelectorAll("#picture .node")].find((mark) => mark.dataset.key === dataset?.key);
const wide = (count) => Math.min(6, 1.2 + Math.log2(1 + count) * 0.8);
const linkTo = (from, to, n, count) => ({ from, to, tone: signColour(n), wide: wide(count), dashed: row.sign[n] < 0 });
const groupNode = (id, g, tone) => ({
  id, label: texts.group[g], pill: true, tone, told: `${texts.group[g]}: open this group`,
  open: () => set({ view: "group", group: g }),
});
// Rows as objects {n, count}: of all that pass, those that are meant.
const counted = ({ rows, counts }, meant = () => true) => {
  const list = [];
  for (let k = 0; k < rows.length; k++) if (meant(rows[k])) list.push({ n: rows[k], count: counts[k] });
  return list;
};
const bySaid = (a, b) => b.count - a.count || Math.abs(valueOf("regard", b.n) ?? 0) - Math.abs(valueOf("regard", a.n) ?? 0) || a.n - b.n;
const empty = (text) => by("picture").replaceChildren(make("p", text, "empty"));

// A group's statements, said most first, from the most negative at the left to the most positive.
const drawGroup = () => {
  const g = state.group;
  const own = counted(passingBut("inGroup"), (n) => row.group[n] === g).sort(bySaid);
  if (!own.length) return empty("No statement of this group passes the filters.");
  const kept = own.slice(0, state.limit);
  const order = kept.toSorted((a, b) => row.sign[a.n] - row.sign[b.n] || (valueOf("regard", a.n) ?? 0) - (valueOf("regard", b.n) ?? 0) || a.n - b.n);
  const half = Math.ceil(order.length / 2);
  const node = ({ n, count }) => ({
    id: n, lead: texts.predicate[row.predicate[n]], label: texts.object[row.object[n]],
    told: `${sentence(n)}, said ${count}×, regard ${shownValue("regard", n)}`, open: () => set({ row: n }),
  });
  layered([
    { share: 0.3, room: 0.3, align: "end", nodes: order.slice(0, half).map(node) },
    { share: 0.5, room: 0.26, align: "middle", nodes: [groupNode("g", g)] },
    { share: 0.7, room: 0.3, align: "start", nodes: order.slice(half).reverse().map(node) },
  ], order.map(({ n, count }) => linkTo("g", n, n, count)), `What is said of ${plain(texts.group[g])}`);
  by("caption").textContent = `${plural(kept.length, "statement")} of ${number(own.length)}, those said most; the more negative half at the left.`;
};

// Two sets of statements side by side: what only one has, and what both have. `ever` are the keys of all
// that each side says, whatever the filters: what the other side says and a filter hides is nobody's alone.
const beside = (sets, ever, keyOf, pills, labelOf, toneOf, caption) => {
  const keyed = sets.map((list) => {
    const found = new Map();
    for (const entry of list) {
      const key = keyOf(entry.n);
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(entry);
    }
    return found;
  });
  const weight = (list) => list.reduce((sum, { count }) => sum + count, 0);
  const only = [0, 1].map((s) => [...keyed[s]].filter(([key]) => !ever[1 - s].has(key)).sort((a, b) => weight(b[1]) - weight(a[1]) || a[1][0].n - b[1][0].n));
  const both = [...keyed[0]].filter(([key]) => keyed[1].has(key)).map(([key, list]) => [key, list, keyed[1].get(key)])
    .sort((a, b) => Math.min(weight(b[1]), weight(b[2])) - Math.min(weight(a[1]), weight(a[2])) || a[1][0].n - b[1][0].n);
  const totals = { first: only[0].length, both: both.length, second: only[1].length };
  if (!totals.first && !totals.both && !totals.second) return empty("No statement passes the filters.");
  const most = Math.max(6, Math.ceil(state.limit / 2)), links = [];
  const node = (side) => ([key, list]) => {
    const { n } = list[0], id = `${side}${key}`;
    for (const s of [0, 1]) for (const entry of list.filter((e) => sets[s].includes(e))) links.push({ ...linkTo(`pill${s}`, id, entry.n, entry.count), ...toneOf(s, side, entry.n) });
    return { id, ...labelOf(list), told: list.map((e) => `${sentence(e.n)}, said ${e.count}×`).join("; "), open: () => set({ row: n }) };
  };
  const shared = both.slice(0, most).map(([key, a, b]) => node("both")([key, [...a, ...b]]));
  layered([
    { share: 0, room: 0.25, align: "start", nodes: only[0].slice(0, most).map(node("first")) },
    { share: 0.335, room: 0.14, align: "middle", nodes: [pills[0]] },
    { share: 0.5, room: 0.19, align: "middle", nodes: shared },
    { share: 0.665, room: 0.14, align: "middle", nodes: [pills[1]] },
    { share: 1, room: 0.25, align: "end", nodes: only[1].slice(0, most).map(node("second")) },
  ], links, caption(totals));
  by("caption").textContent = caption(totals);
  return totals;
};

const drawTwo = () => {
  const sets = [state.group, state.with].map((g) => counted(passingBut("inGroup"), (n) => row.group[n] === g).sort(bySaid));
  const [a, b] = [state.group, state.with].map((g) => short(texts.group[g], 40));
  const { start, end } = about.sources[state.source], ever = [new Set(), new Set()];
  for (let n = start; n < end; n++) [state.group, state.with].forEach((g, s) => { if (row.group[n] === g) ever[s].add(row.object[n]); });
  beside(sets, ever, (n) => row.object[n],
    [{ ...groupNode("pill0", state.group), id: "pill0" }, { ...groupNode("pill1", state.with), id: "pill1" }],
    (list) => ({ lead: words(list.map((e) => e.n)), label: texts.object[row.object[list[0].n]] }), () => ({}),
    (t) => `${plural(t.first, "object")} only of ${a}, ${number(t.both)} of both, ${number(t.second)} only of ${b}; those said most are drawn.`);
};

const sourceName = (n) => {
  const s = about.sources[n], arms = about.sources.filter((o) => o.run === s.run).length > 1;
  return arms ? `${s.run} · ${s.arm}` : s.run;
};
const tripleKey = (n) => (row.group[n] * texts.predicate.length + row.predicate[n]) * texts.object.length + row.object[n];
const drawDifferences = () => {
  const { first, second, neutral } = colours();
  const sets = [state.source, state.other].map((s) => counted(passing(s)).sort(bySaid));
  const pill = (s, id, tone) => ({ id, label: sourceName(s), pill: true, tone, told: `${sourceName(s)}, ${about.sources[s].model}`, open: () => set({ source: s, view: "map" }) });
  beside(sets, [state.source, state.other].map(rowsByKey), tripleKey, [pill(state.source, "pill0", first), pill(state.other, "pill1", second)],
    ([{ n }]) => ({ lead: state.inGroup < 0 ? texts.group[row.group[n]] : "", label: [texts.predicate[row.predicate[n]], texts.object[row.object[n]]].join(" ") }),
    (s, side) => ({ tone: side === "both" ? neutral : s ? second : first, dashed: side === "second" }),
    (t) => `${plural(t.first, "statement")} only in ${short(sourceName(state.source), 40)}, ${number(t.both)} in both, ${number(t.second)} only in ${short(sourceName(state.other), 40)}; those said most are drawn.`);
};

// The shortest ways from one group to another, over objects that were said of both ends of each step.
const drawPath = () => {
  if (state.group === state.with) {
    by("caption").textContent = "";
    return empty("Choose two groups: a path leads from one to another.");
  }
  const found = counted(passingBut("inGroup")), near = { g: new Map(), o: new Map() };
  for (const { n, count } of found) {
    const g = row.group[n], o = row.object[n];
    if (!near.g.has(g)) near.g.set(g, new Map());
    if (!near.o.has(o)) near.o.set(o, new Map());
    const best = near.g.get(g).get(o);
    if (!best || best.count < count) { near.g.get(g).set(o, { n, count }); near.o.get(o).set(g, { n, count }); }
  }
  const levels = [new Map([[state.group, null]])], seen = { g: new Set([state.group]), o: new Set() };
  let kind = "g";
  while (levels.at(-1).size && !(kind === "g" && levels.at(-1).has(state.with))) {
    const next = new Map(), other = kind === "g" ? "o" : "g";
    for (const id of levels.at(-1).keys()) for (const end of near[kind].get(id)?.keys() ?? []) if (!seen[other].has(end)) next.set(end, null);
    for (const id of next.keys()) seen[other].add(id);
    levels.push(next);
    kind = other;
  }
  const a = short(texts.group[state.group], 40), b = short(texts.group[state.with], 40);
  if (!levels.at(-1).size) {
    by("caption").textContent = "";
    return empty(`No path leads from ${a} to ${b} over the statements that pass the filters.`);
  }
  // Back from the end: only what leads there, and of that the strongest of each level.
  levels[levels.length - 1] = new Map([[state.with, null]]);
  const strength = (kind, id, ends) => Math.max(0, ...[...ends].map((end) => near[kind].get(id).get(end)?.count ?? 0));
  for (let level = levels.length - 2; level > 0; level--) {
    const k = level % 2 ? "o" : "g", after = levels[level + 1], ends = new Set(after.keys());
    const leading = [...levels[level].keys()].filter((id) => [...near[k].get(id).keys()].some((end) => ends.has(end)));
    leading.sort((x, y) => strength(k, y, ends) - strength(k, x, ends) || x - y);
    levels[level] = new Map(leading.slice(0, Math.max(4, Math.round(state.limit / 2))).map((id) => [id, null]));
  }
  for (let level = 1; level < levels.length; level++) {  // what no longer leads from the start
    const k = level % 2 ? "o" : "g", before = levels[level - 1];
    for (const id of [...levels[level].keys()]) if (![...near[k].get(id).keys()].some((end) => before.has(end))) levels[level].delete(id);
  }
  const links = [], last = levels.length - 1;
  const columns = levels.map((level, at) => ({
    share: at / last, room: 0.9 / levels.length, align: at === 0 ? "start" : at === last ? "end" : "middle",
    nodes: [...level.keys()].map((id) => {
      const k = at % 2 ? "o" : "g";
      if (at > 0) for (const end of levels[at - 1].keys()) {
        const tie = near[k].get(id).get(end);
        if (tie) links.push(linkTo(`${at - 1} ${end}`, `${at} ${id}`, tie.n, tie.count));
      }
      if (k === "g") return { ...groupNode(`${at} ${id}`, id), id: `${at} ${id}` };
      const rows = [...near.o.get(id).values()];
      return { id: `${at} ${id}`, label: texts.object[id], told: `${texts.object[id]}: ${rows.slice(0, 6).map((e) => sentence(e.n)).join("; ")}`, open: () => openObject(id) };
    }),
  }));
  layered(columns, links, `Paths from ${a} to ${b}`);
  by("caption").textContent = `The shortest paths from ${a} to ${b}: ${plural(last, "step")}, over what is said of both ends of each.`;
};
const PICTURES = { group: drawGroup, two: drawTwo, differences: drawDifferences, path: drawPath };
