// The tables: the statements that pass, and what they add up to. They hold what the pictures show.
const PAGE = 50;
const rankOf = {};
// The place of each text of a dictionary in the alphabet.
const ranks = (kind) => {
  if (!rankOf[kind]) {
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    const order = texts[kind].map((_, n) => n).sort((a, b) => compare(texts[kind][a], texts[kind][b]));
    rankOf[kind] = new Uint32Array(order.length);
    order.forEach((n, at) => { rankOf[kind][n] = at; });
  }
  return rankOf[kind];
};
// Places in the selection, in the order of the table. Key and place are packed into one number: numbers
// are sorted without a call for each two of them.
const ROOM = 2 ** 24;  // more than there are rows in a page
const ordered = ({ rows, counts }) => {
  const packed = new Float64Array(rows.length), turn = state.down ? -1 : 1;
  const sort = sortedSource() >= 0 ? "count" : state.sort, named = Object.hasOwn(ORDERS, sort) && sort !== "count";
  const rank = named ? ranks(sort) : null, column = named ? row[sort] : row.measures[sort];
  for (let k = 0; k < rows.length; k++) {
    const key = sort === "count" ? counts[k] : named ? rank[column[rows[k]]] : column[rows[k]];
    const none = !named && key === NO_VALUE;  // without a value: last, whatever the turn
    packed[k] = (none ? 2 ** 28 : turn * key) * ROOM + k;
  }
  packed.sort();
  return Uint32Array.from(packed, (value) => value - Math.floor(value / ROOM) * ROOM);
};
// What a group and two groups, or a source, are about.
const tableRows = (source = state.source) => {
  const { view, group, with: other } = state;
  const picked = view === "map" || view === "differences" ? passingBut("", source) : passingBut("inGroup", source);
  if (view === "map" || view === "differences") return picked;
  const wanted = view === "group" ? [group] : [group, other], keep = [];
  picked.rows.forEach((n, k) => { if (wanted.includes(row.group[n])) keep.push(k); });
  return { rows: Uint32Array.from(keep, (k) => picked.rows[k]), counts: Uint32Array.from(keep, (k) => picked.counts[k]) };
};

const COLUMNS = ["group", "predicate", "object", "count"];
// The head of a column that the table can be sorted by.
const sortHead = (key, text, numbers) => {
  const head = make("th", null, numbers ? "number" : "");
  head.scope = "col";
  head.append(button(text, () => set({ sort: key, down: state.sort === key ? !state.down : numbers })));
  if (state.sort === key) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
  return head;
};
const statementHead = () => {
  const line = make("tr");
  for (const key of [...COLUMNS, ...about.measures.map((m) => m.name)]) {
    line.append(sortHead(key, key === "count" ? "Said" : key[0].toUpperCase() + key.slice(1).replace("_", " "), !["group", "predicate", "object"].includes(key)));
  }
  return line;
};
// The line of a statement, which opens its details.
const statementLine = (n) => {
  const line = make("tr"), open = () => set({ row: n });
  line.tabIndex = 0;
  line.dataset.row = n;
  for (const kind of ["group", "predicate", "object"]) line.append(make("td", texts[kind][row[kind][n]], "said"));
  line.addEventListener("click", open);
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); open(); }
    const near = event.key === "ArrowDown" ? line.nextElementSibling : event.key === "ArrowUp" ? line.previousElementSibling : null;
    if (near) { event.preventDefault(); near.focus(); }
  });
  return line;
};
// Of a list, what stands on the page that is open.
const onPage = (list) => {
  const pages = Math.max(1, Math.ceil(list.length / PAGE));
  state.page = Math.min(state.page, pages - 1);
  by("page").textContent = `page ${number(state.page + 1)} of ${number(pages)}`;
  by("previous").disabled = state.page === 0;
  by("next").disabled = state.page + 1 >= pages;
  return list.slice(state.page * PAGE, (state.page + 1) * PAGE);
};
const drawStatements = () => {
  const picked = tableRows();
  by("head").replaceChildren(statementHead());
  by("body").replaceChildren(...Array.from(onPage(ordered(picked)), (k) => {
    const n = picked.rows[k], line = statementLine(n);
    line.append(make("td", number(picked.counts[k]), "number"));
    for (const m of about.measures) {
      const cell = make("td", shownValue(m.name, n), "number");
      if (m.name === "regard" && row.label[n]) cell.classList.add(core.label[row.label[n]]);
      line.append(cell);
    }
    return line;
  }));
};

// Marks the statement whose details are open.
const markRow = () => {
  for (const line of document.querySelectorAll("#body [data-row]")) line.classList.toggle("chosen", Number(line.dataset.row) === state.row);
};

const NOUN = { group: "Group", predicate: "Predicate", topic: "Topic", community: "Community" };
const drawUnits = () => {
  const kind = state.by, all = sums(tableRows(), maps[kind].unit.length, unitOf(kind));
  const head = make("tr");
  for (const text of [NOUN[kind], "Statements", "Said", "Positive less negative", ""]) {
    const cell = make("th", text, text === NOUN[kind] || !text ? "" : "number");
    cell.scope = "col";
    head.append(cell);
  }
  const order = [...maps[kind].unit.keys()].filter((u) => all.n[u]).sort((a, b) => all.said[b] - all.said[a] || a - b);
  by("head").replaceChildren(head);
  by("body").replaceChildren(...onPage(order).map((u) => {
    const line = make("tr"), name = make("th"), value = net(all, u);
    name.scope = "row";
    name.append(button(unitName(kind, u), () => openUnit(kind, u), "link said"));
    const bar = make("td", null, "bar");
    const fill = make("i");
    fill.style.setProperty("--from", `${50 + Math.min(0, value ?? 0) * 50}%`);
    fill.style.setProperty("--wide", `${Math.abs(value ?? 0) * 50}%`);
    fill.style.setProperty("--tone", netColour(value));
    bar.append(fill);
    line.append(name, make("td", number(all.n[u]), "number"), make("td", number(all.said[u]), "number"), make("td", netText(value), "number"), bar);
    return line;
  }));
};
const TABLES = { statements: drawStatements, runs: drawBeside, units: drawUnits };
// The table that is open: where two sources are held against each other, at first that of all of them.
const tableOpen = () => {
  const asked = state.table ?? (state.view === "differences" ? "runs" : "statements");
  return asked === "runs" && about.sources.length < 2 ? "statements" : asked;
};
const drawTable = () => {
  const open = tableOpen();
  for (const name of Object.keys(TABLES)) by(`tab-${name}`).setAttribute("aria-selected", name === open);
  by("tab-units").textContent = { group: "Groups", predicate: "Predicates", topic: "Topics", community: "Communities" }[state.by];
  by("found").textContent = plural(tableRows().rows.length, "statement");
  TABLES[open]();
};
