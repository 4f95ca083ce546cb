// The tables: the statements that pass, and their totals. They hold what the pictures show.
// The statements behind a view of a group, of two groups or of a source. `but` names filters to skip.
const tableRows = (source = state.source, but = []) => {
  const { view, group, with: other } = state;
  if (view === "map" || view === "differences") return passingBut(but, source);
  const picked = passingBut([...but, "inGroup"], source);
  const wanted = view === "group" ? [group] : [group, other], keep = [];
  picked.rows.forEach((n, k) => { if (wanted.includes(row.group[n])) keep.push(k); });
  return { rows: Uint32Array.from(keep, (k) => picked.rows[k]), counts: Uint32Array.from(keep, (k) => picked.counts[k]) };
};

// Marks the statement whose details are open.
const markRow = () => {
  for (const line of document.querySelectorAll("#body [data-row]")) line.classList.toggle("chosen", Number(line.dataset.row) === state.row);
};

const NOUN = { group: "Group", predicate: "Predicate", topic: "Topic", community: "Community", meaning: "Region" };
// The figures of groups that the run was measured with, if nothing is filtered: they are of all that counts.
const figuresOf = (kind) => {
  const open = FILTERS.every((key) => (key === "measures" ? !Object.keys(state.measures).length : key === "inGroup" || state[key] === BASE[key]));
  const { regard } = about.sources[state.source];
  return kind === "group" && open && Object.keys(regard).length ? regard : null;
};
const figureText = ([value, low, high, n]) => `${netText(value / n)} (${signed(low / n)} to ${signed(high / n)}), n = ${number(n)}`;
const drawUnits = () => {
  const kind = state.by, all = sums(tableRows(), maps[kind].unit.length, unitOf(kind)), figures = figuresOf(kind);
  const head = make("tr");
  for (const text of [NOUN[kind], "Statements", "Said", "Positive minus negative", "", ...(figures ? ["In the report, with 95% interval"] : [])]) {
    const cell = make("th", text, text === NOUN[kind] || !text ? "" : "number");
    cell.scope = "col";
    head.append(cell);
  }
  const order = [...maps[kind].unit.keys()].filter((u) => all.n[u]).sort((a, b) => all.said[b] - all.said[a] || a - b);
  putHeads(head);
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
    if (figures) line.append(make("td", figures[maps.group.unit[u]] ? figureText(figures[maps.group.unit[u]]) : "", "number"));
    return line;
  }));
};
const TABLES = { statements: () => drawStatements(tableRows()), runs: drawBeside, units: drawUnits };
// The open table: when two sources are compared, that of all sources to begin with.
const tableOpen = () => {
  const asked = state.table ?? (state.view === "differences" ? "runs" : "statements");
  return asked === "runs" && about.sources.length < 2 ? "statements" : asked;
};
const drawTable = () => {
  const open = tableOpen();
  for (const name of Object.keys(TABLES)) by(`tab-${name}`).setAttribute("aria-selected", name === open);
  by("tab-units").textContent = { group: "Groups", predicate: "Predicates", topic: "Topics", community: "Communities", meaning: "Regions" }[state.by];
  by("found").textContent = plural(tableRows().rows.length, "statement");
  TABLES[open]();
};
