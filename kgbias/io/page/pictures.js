// The pictures of a few statements: columns of words with lines between them. Everything in them can be
// reached with the keyboard, and their words are text.
// In a narrow window the columns of statements are stacked, with the names they belong to beside them.
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
// `links` are {from, to, tone, wide, dashed}. `share` is the place of the column, 0 to 1.
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
// The mark in the current picture for a mark of the previous one.
const nodeOf = ({ dataset }) => [...document.querySelectorAll("#picture .node")].find((mark) => mark.dataset.key === dataset?.key);
const wide = (count) => Math.min(6, 1.2 + Math.log2(1 + count) * 0.8);
const linkTo = (from, to, n, count) => ({ from, to, tone: signColour(n), wide: wide(count), dashed: row.sign[n] < 0 });
const groupNode = (id, g, tone) => ({
  id, label: texts.group[g], pill: true, tone, told: `${texts.group[g]}: open this group`, open: () => openGroup(g),
});
const drawNone = (text) => {
  by("picture").replaceChildren(make("p", text, "empty"));
  return "";
};

// Each of these draws statements {n, count} and returns its caption.
// Statements with the same words as one {n, count, all}: a sentence may have been cut into predicate and
// object in several places.
const saidOnce = (own) => {
  const found = new Map();
  for (const { n, count } of own.toSorted(bySaid)) {
    const kept = found.get(sentence(n));
    if (!kept) found.set(sentence(n), { n, count, all: [n] });
    else {
      kept.count += count;
      kept.all.push(n);
    }
  }
  return [...found.values()];
};
// A group's most often said statements, from the most negative on the left to the most positive.
const groupPicture = (g, own, most) => {
  if (!own.length) return drawNone("No statements about this group pass the filters.");
  const said = saidOnce(own), kept = said.toSorted(bySaid).slice(0, most);
  const order = kept.toSorted((a, b) => row.sign[a.n] - row.sign[b.n] || (valueOf("regard", a.n) ?? 0) - (valueOf("regard", b.n) ?? 0) || a.n - b.n);
  const half = Math.ceil(order.length / 2);
  const node = ({ n, count, all }) => ({
    id: n, lead: textOf("predicate", n), label: textOf("object", n),
    told: `${sentence(n)}, said ${count}×${row.measures.regard ? `, regard ${shownValue("regard", n)}` : ""}`, open: () => openRows(all),
  });
  layered([
    { share: 0.3, room: 0.3, align: "end", nodes: order.slice(0, half).map(node) },
    { share: 0.5, room: 0.26, align: "middle", nodes: [groupNode("g", g)] },
    { share: 0.7, room: 0.3, align: "start", nodes: order.slice(half).reverse().map(node) },
  ], order.map(({ n, count }) => linkTo("g", n, n, count)), `What is said of ${plain(texts.group[g])}`);
  return `${plural(kept.length, "statement")} of ${number(said.length)}, the most often said; the more negative half is on the left.`;
};

// Two sets of statements side by side: what only one has, and what both have. `ever` holds the keys of
// all that each side says, whatever the filters: what the other side says, though hidden, is not one's alone.
const besidePicture = ({ sets, ever, keyOf, pills, labelOf, toneOf, caption, most }) => {
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
  if (!totals.first && !totals.both && !totals.second) return drawNone("No statements pass the filters.");
  const links = [];
  const node = (side) => ([key, list]) => {
    const id = `${side}${key}`;
    for (const s of [0, 1]) for (const entry of list.filter((e) => sets[s].includes(e))) links.push({ ...linkTo(`pill${s}`, id, entry.n, entry.count), ...toneOf(s, side, entry.n) });
    return { id, ...labelOf(list), told: list.map((e) => `${sentence(e.n)}, said ${e.count}×`).join("; "), open: () => openRows(list.map((e) => e.n)) };
  };
  const [at, room] = only[0].length || only[1].length ? [0.335, 0.19] : [0.12, 0.6];  // what both have gets the remaining room
  const shared = both.slice(0, most).map(([key, a, b]) => node("both")([key, [...a, ...b]]));
  layered([
    { share: 0, room: 0.25, align: "start", nodes: only[0].slice(0, most).map(node("first")) },
    { share: at, room: 0.14, align: "middle", nodes: [pills[0]] },
    { share: 0.5, room, align: "middle", nodes: shared },
    { share: 1 - at, room: 0.14, align: "middle", nodes: [pills[1]] },
    { share: 1, room: 0.25, align: "end", nodes: only[1].slice(0, most).map(node("second")) },
  ], links, caption(totals));
  return caption(totals);
};
const words = (list) => [...new Set(list.map(({ n }) => textOf("predicate", n)))].join(", ");
// What is said of either of two groups, and of both: `sets` of statements, `ever` all objects said of each.
const twoPicture = (pair, sets, ever, most) => {
  const [a, b] = pair.map((g) => short(texts.group[g], 40));
  return besidePicture({
    sets: sets.map((list) => list.toSorted(bySaid)), ever, most,
    keyOf: (n) => row.object[n],
    pills: pair.map((g, s) => groupNode(`pill${s}`, g)),
    labelOf: (list) => ({ lead: words(list), label: textOf("object", list[0].n) }),
    toneOf: () => ({}),
    caption: (t) => `${plural(t.first, "object")} only of ${a}, ${number(t.both)} of both, ${number(t.second)} only of ${b}; the most often said are drawn.`,
  });
};
