// The statements of all sources side by side: which says what, and how often. Their counts are never
// added up.
const rowsOf = [];
// The row of each statement of a source, by its key, whatever the filters.
const rowsByKey = (s) => {
  if (!rowsOf[s]) {
    rowsOf[s] = new Map();
    for (let n = about.sources[s].start; n < about.sources[s].end; n++) rowsOf[s].set(tripleKey(n), n);
  }
  return rowsOf[s];
};
// What passes in any source: {n: one of its rows, counts: by source, sources: how many say it}.
const besideRows = () => {
  const found = new Map();
  about.sources.forEach((_, s) => {
    const { rows, counts } = tableRows(s);
    for (let k = 0; k < rows.length; k++) {
      const key = tripleKey(rows[k]);
      let entry = found.get(key);
      if (!entry) found.set(key, (entry = { n: rows[k], key, counts: new Uint32Array(about.sources.length), sources: 0 }));
      entry.counts[s] = counts[k];
      entry.sources += 1;
    }
  });
  return [...found.values()];
};
const besideOrdered = () => {
  const found = besideRows(), turn = state.down ? -1 : 1, s = sortedSource();
  const most = ({ counts }) => Math.max(...counts);
  const kind = ["group", "predicate", "object"].find((k) => k === state.sort);
  const key = kind ? ({ n }) => ranks(kind)[row[kind][n]] : s >= 0 ? ({ counts }) => counts[s] : ({ sources }) => sources;
  return found.sort((a, b) => turn * (key(a) - key(b)) || most(b) - most(a) || a.n - b.n);
};
const BY_SOURCE = /^source(\d{1,3})$/;  // a column to sort by
const sortedSource = (sort = state.sort) => {
  const s = Number(BY_SOURCE.exec(sort)?.[1] ?? -1);
  return s < about.sources.length ? s : -1;
};
const besideHead = () => {
  const line = make("tr"), sources = about.sources.map((_, s) => [`source${s}`, sourceName(s)]);
  const columns = [["group", "Group"], ["predicate", "Predicate"], ["object", "Object"], ["count", "Said by"], ...sources];
  for (const [key, text] of columns) {
    const head = sortHead(key, short(text, 24), key === "count" || key.startsWith("source"));
    head.title = text;
    line.append(head);
  }
  return line;
};
const drawBeside = () => {
  const found = besideOrdered(), several = about.sources.length;
  putHeads(besideHead());
  by("body").replaceChildren(...onPage(found).map(({ n, key, counts, sources }) => {
    const line = statementLine(n);
    line.append(make("td", `${sources} of ${several}`, "number"));
    counts.forEach((count, s) => {
      const there = count ? undefined : rowsByKey(s).get(key), cell = make("td", count ? number(count) : there === undefined ? "–" : `(${number(totals[there])})`, "number");
      if (there !== undefined) { cell.title = "Said, but the filters leave it out"; cell.classList.add("soft"); }
      line.append(cell);
    });
    return line;
  }));
  by("found").textContent = `${plural(found.length, "statement")} of ${several}${about.sources.length === new Set(about.sources.map((s) => s.run)).size ? " runs" : " runs and arms"}`;
};
