// The pictures of a few statements: columns of words with lines between them. Everything in them can be
// reached with the keyboard, and their words are text.
// In a narrow window the columns of statements are stacked, each under its heading, with the names they belong to beside them.
const stacked = (columns) => {
  const list = { share: 0.42, room: 0.56, align: "start", nodes: [] };
  for (const { head, nodes } of columns) {
    if (nodes.length && !nodes[0].pill) list.nodes.push(...(head ? [{ head }] : []), ...nodes);
  }
  return [list, { share: 0, room: 0.34, align: "start", names: true, nodes: columns.flatMap((c) => c.nodes.filter((n) => n.pill)) }];
};

const LINES = 4;  // of a statement; a name is always whole
// A word in parts that fit: one that is a little too wide stays whole.
const broken = (word, room, font) => {
  const parts = [];
  let rest = [...word];
  while (rest.length > 1 && widthOf(rest.join(""), font) > 1.25 * room) {
    let fits = 1;
    while (fits < rest.length - 1 && widthOf(rest.slice(0, fits + 1).join(""), font) <= room) fits += 1;
    parts.push(rest.slice(0, fits).join(""));
    rest = rest.slice(fits);
  }
  return [...parts, rest.join("")];
};
// What a node says in lines {lead, label} that fit into a width, the last cut short if they would be more than `most`.
const wrapped = (lead, label, room, font, most = LINES) => {
  const said = (line) => [line.lead, line.label].filter(Boolean).join(" "), lines = [{ lead: "", label: "" }];
  const words = [["lead", lead ?? ""], ["label", label]].flatMap(([part, text]) => plain(text).split(" ").filter(Boolean).flatMap((word) => broken(word, room, font)).map((word) => [part, word]));
  for (const [n, [part, word]] of words.entries()) {
    const line = lines.at(-1), longer = { ...line, [part]: line[part] ? `${line[part]} ${word}` : word };
    if (!said(line) || widthOf(said(longer), font) <= room) lines[lines.length - 1] = longer;
    else if (lines.length < most) lines.push({ lead: "", label: "", [part]: word });
    else {
      line[part] = fitting(`${line[part]} ${words.slice(n).map(([, rest]) => rest).join(" ")}`, room, font);
      break;
    }
  }
  return lines.map((line) => ({ ...line, wide: widthOf(said(line), font) }));
};

// Draw columns side by side: each {align, share, nodes}, a node {id, label, lead, tone, rows, pill};
// `links` are {from, to, tone, wide, dashed}. `share` is the place of the column, 0 to 1; `head` stands above it.
const layered = (columns, links, describe) => {
  const box = by("picture"), width = Math.max(300, box.clientWidth), narrow = width < 640;
  const size = narrow ? 12 : width > 1800 ? 17 : 14, high = Math.round(size * (narrow ? 1.75 : 1.85)), step = Math.round(size * 1.25);
  const large = Math.round(size * 1.15), font = `${size}px ${FONT}`, bold = `600 ${large}px ${FONT}`;
  const { ink, soft, card, accent, page } = colours();
  const placed = (narrow ? stacked(columns) : columns).map((column) => {
    const room = Math.max(40, column.room * width - 16);
    const nodes = column.nodes.map((node) => {
      const spread = node.pill ? 24 : 0;
      const lines = node.head ? wrapped("", node.head, room, `600 ${font}`, Infinity) : wrapped(node.lead, node.label, room - spread, node.pill ? bold : font, node.pill ? Infinity : LINES);
      const wide = Math.max(...lines.map((line) => line.wide)), tall = (node.head ? 1.4 : node.pill ? 1.4 : 1) * high + (lines.length - 1) * (node.pill ? 1.15 : 1) * step;
      return { ...node, spread, lines, wide, tall };
    });
    const head = column.head && !narrow ? wrapped("", column.head, room, `600 ${font}`, Infinity) : [];
    return { ...column, nodes, head, tall: nodes.reduce((sum, node) => sum + node.tall, 0) };
  });
  const over = Math.max(...placed.map(({ head }) => head.length)) * step;  // the headings
  const top = over ? over + 26 : 0, most = Math.max(...placed.map((c) => c.tall));
  const tops = new Map();
  for (const column of placed) {
    let y = column.names ? 0 : top + 20 + (narrow ? 0 : (most - column.tall) / 2);
    for (const node of column.nodes) {
      let middle = y + node.tall / 2;
      if (column.names) {  // beside the middle of what it is linked with
        const ends = links.flatMap(({ from, to }) => (from === node.id ? [to] : to === node.id ? [from] : [])).map((end) => tops.get(end)).filter(Boolean);
        middle = Math.max(ends.reduce((a, b) => a + b, 0) / (ends.length || 1), middle);
      }
      tops.set(node.id ?? node, middle);
      y = middle + node.tall / 2 + (column.names ? 6 : 0);
      column.low = y;
    }
  }
  const height = Math.max(narrow ? 120 : 220, ...placed.map((c) => (c.low ?? 0) + 20));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": describe });
  const lines = svg("g", { fill: "none" }), marks = svg("g");
  const places = new Map();
  // Text of several lines about a middle; a space of no width keeps their words apart where they are read or copied.
  const write = (text, x, align, y, between, attributes) => {
    const element = svg("text", { "text-anchor": align, "dominant-baseline": "central", ...attributes });
    text.forEach((line, n) => {
      if (n) element.append(svg("tspan", { "font-size": 0 }, " "));
      const at = { x, y: y + (n - (text.length - 1) / 2) * between };
      if (line.lead) element.append(svg("tspan", { ...at, fill: soft }, line.label ? `${line.lead} ` : line.lead));
      if (line.label) element.append(svg("tspan", { ...(line.lead ? {} : at), fill: attributes.fill ?? ink, "font-weight": attributes["font-weight"] ?? 400 }, line.label));
    });
    return element;
  };
  for (const column of placed) {
    const x = 12 + column.share * (width - 24);
    const anchor = (left, wide) => (column.align === "start" ? left : column.align === "end" ? left + wide : left + wide / 2);
    const title = (text, y) => marks.append(write(text, x, column.align, y, step, { class: "said", "font-size": size, "font-weight": 600, fill: ink }));
    if (column.head.length) title(column.head, 14 + over / 2);
    for (const node of column.nodes) {
      const y = tops.get(node.id ?? node);
      if (node.head) {
        title(node.lines, y + 0.2 * high);
        continue;
      }
      const left = column.align === "start" ? x : column.align === "end" ? x - node.wide - node.spread : x - (node.wide + node.spread) / 2;
      const mark = svg("g", { tabindex: 0, role: "button", class: `node${node.pill ? " pill" : ""}`, "aria-label": plain(node.told) });
      if (node.pill) {
        const w = node.wide + node.spread, h = node.tall - 0.15 * high;
        mark.append(svg("rect", { x: left, y: y - h / 2, width: w, height: h, rx: Math.min(h / 2, high * 0.62), fill: card, stroke: node.tone ?? accent, "stroke-width": 2 }));
      } else mark.append(svg("rect", { x: left - 4, y: y - node.tall / 2 + 1, width: node.wide + 8, height: node.tall - 2, rx: 4, class: "hit", fill: page }));
      const line = write(node.lines, anchor(left + node.spread / 2, node.wide), column.align, y, node.pill ? 1.15 * step : step, { class: "said", "font-size": node.pill ? large : size, ...(node.pill ? { "font-weight": 600 } : {}) });
      mark.dataset.key = node.id;
      mark.append(svg("title", {}, plain(node.told)), line);
      mark.addEventListener("click", () => node.open());
      mark.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        node.open();
      });
      marks.append(mark);
      places.set(node.id, { y, column, left: left - 7, right: left + node.wide + node.spread + 7 });
    }
  }
  // A line bends between columns, and runs level beside the words of its own: so it passes behind none.
  for (const { column, left, right } of places.values()) {
    column.left = Math.min(left, column.left ?? left);
    column.right = Math.max(right, column.right ?? right);
  }
  for (const link of links) {
    const a = places.get(link.from), b = places.get(link.to);
    const forth = a.left + a.right < b.left + b.right;
    const ends = forth ? [a.right - 6, a.column.right, b.column.left, b.left] : [a.left + 6, a.column.left, b.column.right, b.right];
    const middle = ((ends[1] + ends[2]) / 2).toFixed(1), [x1, from, to, x2] = ends.map((x) => x.toFixed(1)), [y1, y2] = [a.y, b.y].map((y) => y.toFixed(1));
    lines.append(svg("path", { d: `M${x1} ${y1}H${from}C${middle} ${y1} ${middle} ${y2} ${to} ${y2}H${x2}`, stroke: link.tone, "stroke-width": link.wide, "stroke-opacity": 0.75, "stroke-linecap": "round", ...(link.dashed ? { "stroke-dasharray": "5 4" } : {}) }));
  }
  picture.append(lines, marks);
  const focused = box.contains(document.activeElement) ? document.activeElement : null;
  box.replaceChildren(picture);
  if (focused) nodeOf(focused)?.focus({ preventScroll: true });
};
// The mark in the current picture for a mark of the previous one.
const nodeOf = ({ dataset }) => [...document.querySelectorAll("#picture .node")].find((mark) => mark.dataset.key === dataset?.key);
const wide = (count) => Math.min(6, 1.2 + Math.log2(1 + count) * 0.8);
const linkTo = (from, to, n, count) => ({ from, to, tone: rowColour(n), wide: wide(count), dashed: row.sign[n] < 0 });
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
  const sides = kept.some(({ n }) => valueOf("regard", n) !== null) ? "; the more negative half is on the left" : "";
  return `${plural(kept.length, "statement")} of ${number(said.length)}, the most often said${sides}.`;
};

// Two sets of statements side by side: what only one has, and what both have. `ever` holds the keys of
// all that each side says, whatever the filters: what the other side says, though hidden, is not one's alone.
const besidePicture = ({ sets, ever, keyOf, names, pills, labelOf, toneOf, caption, most }) => {
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
  const [at, room] = only[0].length || only[1].length ? [0.325, 0.17] : [0.12, 0.6];  // what both have gets the remaining room
  const shared = both.slice(0, most).map(([key, a, b]) => node("both")([key, [...a, ...b]]));
  const headed = (name, drawn, all) => ({ head: all ? `${name}: ${drawn < all ? `${number(drawn)} of ` : ""}${number(all)}` : "" });
  layered([
    { share: 0.225, room: 0.23, align: "end", ...headed(`Only ${names[0]}`, Math.min(most, totals.first), totals.first), nodes: only[0].slice(0, most).map(node("first")) },
    { share: at, room: 0.16, align: "middle", nodes: [pills[0]] },
    { share: 0.5, room, align: "middle", ...headed("Both", shared.length, totals.both), nodes: shared },
    { share: 1 - at, room: 0.16, align: "middle", nodes: [pills[1]] },
    { share: 0.775, room: 0.23, align: "start", ...headed(`Only ${names[1]}`, Math.min(most, totals.second), totals.second), nodes: only[1].slice(0, most).map(node("second")) },
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
    names: pair.map((g) => texts.group[g]),
    pills: pair.map((g, s) => groupNode(`pill${s}`, g)),
    labelOf: (list) => ({ lead: words(list), label: textOf("object", list[0].n) }),
    toneOf: () => ({}),
    caption: (t) => `${plural(t.first, "object")} only of ${a}, ${number(t.both)} of both, ${number(t.second)} only of ${b}; the most often said are drawn.`,
  });
};
