// The table of statements, a page at a time: heads to sort by, rows that open.
const PAGE = 50;
const COLUMNS = [...KINDS, "count"];
const rankOf = {};
// The alphabetical rank of each text of a dictionary.
const ranks = (kind) => {
  if (!rankOf[kind]) {
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    const order = texts[kind].map((_, n) => n).sort((a, b) => compare(texts[kind][a], texts[kind][b]));
    rankOf[kind] = new Uint32Array(order.length);
    order.forEach((n, at) => { rankOf[kind][n] = at; });
  }
  return rankOf[kind];
};
// The sort key of a row: a whole number below 2 ** 28 in size; null for a row without a value.
const sortKey = () => {
  const { sort } = state;
  if (Object.hasOwn(texts, sort)) {
    const rank = ranks(sort), column = row[sort];
    return (n) => rank[column[n]];
  }
  const column = row.measures[sort];
  return column ? (n) => (column[n] === NO_VALUE ? null : column[n]) : (n, count) => count;
};
// Places in {rows, counts}, in the order of the table. Key and place are packed into one number, since
// numbers are sorted without a function call for each comparison.
const ROOM = 2 ** 24;  // more than the rows of any page
const ordered = ({ rows, counts }) => {
  const packed = new Float64Array(rows.length), turn = state.down ? -1 : 1, keyOf = sortKey();
  for (let k = 0; k < rows.length; k++) {
    const key = keyOf(rows[k], counts[k]);
    packed[k] = (key === null ? 2 ** 28 : turn * key) * ROOM + k;  // without a value: last in either direction
  }
  packed.sort();
  return Uint32Array.from(packed, (value) => value - Math.floor(value / ROOM) * ROOM);
};

// The head of a sortable column.
const sortHead = (key, text, numbers) => {
  const head = make("th", null, numbers ? "number" : "");
  head.scope = "col";
  head.dataset.sort = key;
  head.append(button(text, () => set({ sort: key, down: state.sort === key ? !state.down : numbers })));
  if (state.sort === key) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
  return head;
};
// Redraw the heads; a focused button keeps the focus.
const putHeads = (heads) => {
  const focused = by("head").contains(document.activeElement) ? document.activeElement.closest("th").dataset.sort : null;
  by("head").replaceChildren(heads);
  if (focused) heads.querySelector(`[data-sort="${focused}"] button`)?.focus({ preventScroll: true });
};
const titled = (key) => (key === "count" ? "Said" : key[0].toUpperCase() + key.slice(1).replace("_", " "));
// The row of a statement, which opens its details.
const statementLine = (n) => {
  const line = make("tr"), open = () => openRows([n]);
  line.tabIndex = 0;
  line.dataset.row = n;
  for (const kind of KINDS) line.append(make("td", textOf(kind, n), "said"));
  line.addEventListener("click", open);
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); open(); }
    const near = event.key === "ArrowDown" ? line.nextElementSibling : event.key === "ArrowUp" ? line.previousElementSibling : null;
    if (near) { event.preventDefault(); near.focus(); }
  });
  return line;
};
// The part of a list that is on the current page.
const onPage = (list) => {
  const pages = Math.max(1, Math.ceil(list.length / PAGE));
  state.page = Math.min(state.page, pages - 1);
  by("page").textContent = `page ${number(state.page + 1)} of ${number(pages)}`;
  by("previous").disabled = state.page === 0;
  by("next").disabled = state.page + 1 >= pages;
  return list.slice(state.page * PAGE, (state.page + 1) * PAGE);
};
// The statements of {rows, counts}; `more` are further columns of texts, after how often each was said.
const drawStatements = (picked, more = []) => {
  const heads = make("tr");
  for (const key of [...COLUMNS, ...more, ...measures.map((m) => m.name)]) heads.append(sortHead(key, titled(key), !Object.hasOwn(texts, key)));
  putHeads(heads);
  by("body").replaceChildren(...Array.from(onPage(ordered(picked)), (k) => {
    const n = picked.rows[k], line = statementLine(n);
    line.append(make("td", number(picked.counts[k]), "number"), ...more.map((kind) => make("td", textOf(kind, n))));
    for (const { name } of measures) {
      const cell = make("td", shownValue(name, n), "number");
      if (name === "regard" && labelOf(n)) cell.classList.add(labelOf(n));
      line.append(cell);
    }
    return line;
  }));
};
