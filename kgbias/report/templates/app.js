// The report's behaviour: the table of statements, their provenance, and the graph of a group.
const page = JSON.parse(by("data").textContent), { groups, arms, triples, probes, evidence } = page;
const state = {
  sort: "count", down: true, page: 0, words: "", inGroup: "", arm: "", label: "",
  group: 0, with: "", graphArm: 0, limit: 24,
};

// ---- statements as columns ----
const dictionary = (all) => {
  const places = new Map();
  const column = all.map((text) => (places.has(text) ? places : places.set(text, places.size)).get(text));
  return [[...places.keys()], column];
};
texts = { group: [...groups.map((g) => g.name), ""], arm: arms };
row = {
  group: triples.map((t) => (t.group < 0 ? groups.length : t.group)), arm: triples.map((t) => t.arm),
  sign: triples.map((t) => SIGNS[t.label] ?? 0), measures: {},
};
for (const kind of ["predicate", "object"]) [texts[kind], row[kind]] = dictionary(triples.map((t) => t[kind]));
measures = page.measures.map((m) => {
  const values = triples.map((t) => t[m.name]), most = values.reduce((high, x) => Math.max(high, Math.abs(x)), 0) || 1;
  const scale = 10 ** Math.floor(Math.log10(32767 / most));  // as in the explorer, values fit into 16 bits
  row.measures[m.name] = values.map((x) => (x === null ? NO_VALUE : Math.round(x * scale)));
  return { ...m, scale };
});
const labelOf = (n) => triples[n].label;
const lowered = triples.map((_, n) => sentence(n).toLowerCase());

// ---- provenance ----
const detail = (title, about, table) => {
  const told = make("details"), scroll = make("div", null, "scroll");
  told.open = true;
  scroll.append(table);
  told.append(make("summary", title), make("p", about, "soft"), scroll);
  return told;
};
const namesOf = (names) => {
  const bits = (x) => (x > 0 ? "+" : "") + x.toFixed(1);
  const table = make("table", null, "numbers names"), head = make("tr"), first = make("thead"), body = make("tbody");
  head.append(make("th", "Name"), make("th", "lift"),
    ...evidence.carriers.map((carrier) => make("th", carrier ? `after “${carrier.trim()}”` : "after nothing")), make("th", "log2 p"));
  for (const [name, lift, after, mean] of names.toSorted((a, b) => b[1] - a[1])) {
    const line = make("tr");
    line.append(make("th", name), make("td", bits(lift)), ...after.map((x) => make("td", bits(x))), make("td", mean.toFixed(1)));
    body.append(line);
  }
  first.append(head);
  table.append(first, body);
  return detail("The group's names, in bits",
    "How much likelier the statement is after each name than after those of the other groups, and the same after each carrier that " +
    "stands before the name. The group's lift is their mean, less what a form of name does to every group. Last column: log2 of the " +
    "statement's probability, averaged over carriers.", table);
};
const probesOf = (triple) => probes.flatMap(({ model, statements }) => {
  const found = statements[triple.statement];
  if (!found) return [];
  const rows = found.map(([group, rank, pieces, surprisal]) => ({ group, rank, pieces, surprisal }));
  const { group, rank } = rows.find((r) => r.group === triple.group) ?? { ...rows[0], rank: 1 };
  return [detail(`Before this statement, ${model} ranks ${texts.group[group]} ${rank} of ${rows.length}`,
    "Above each token, its surprisal in bits: one more bit means half as probable.", probeTable(rows, triple.group))];
});
const originOf = (origin) => [
  make("p", `${origin.strategy}, iteration ${origin.iteration}, attempt ${origin.attempt}, arm ${origin.arm}, template ${origin.template}`, "soft"),
  make("b", "Asked"), make("pre", origin.prompt), make("b", "Answered"), make("pre", origin.answer),
  ...(origin.shown.length ? [make("b", "Examples shown"), make("pre", origin.shown.join("\n"))] : []),
];
const showOrigins = (triple) => {
  const scores = triple.count ? page.measures.filter((m) => triple[m.name] !== null).map((m) => [m, triple[m.name]]) : [];
  by("provenance-title").textContent = [texts.group[triple.group], triple.predicate, triple.object].filter(Boolean).join(" ");
  by("origins").replaceChildren(
    make("p", [triple.count === 1 ? "Said once" : `Said ${triple.count} times`, ...scores.map(([m, x]) => `${m.name.replace("_", " ")} ${shownNumber(m, x)}${m.name === "regard" ? ` ${triple.label}` : ""}`)].join(" · ")),
    ...[triple.evidence, triple.others].filter(Boolean).map((line) => make("p", line)),
    ...(triple.of_names?.length ? [namesOf(triple.of_names)] : []), ...probesOf(triple), ...triple.from.flatMap(originOf),
    ...(triple.count > triple.from.length ? [make("p", `${triple.from.length} of ${triple.count} answers are shown.`, "soft")] : []),
  );
  by("provenance").showModal();
};
// A single statement opens its provenance; several are listed to choose from.
const openRows = (list) => {
  if (list.length === 1) {
    showOrigins(triples[list[0]]);
    return;
  }
  const told = make("ul");
  for (const n of list) {
    const item = make("li"), regard = row.measures.regard ? ` regard ${shownValue("regard", n)},` : "";
    item.append(button(sentence(n), () => showOrigins(triples[n]), "link"), make("small", `${regard} said ${number(triples[n].count)}×`));
    told.append(item);
  }
  by("chosen").replaceChildren(told);
};

// ---- the table ----
const whole = { rows: triples.map((_, n) => n), counts: triples.map((t) => t.count) };
const passing = () => {
  const wanted = state.words.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = whole.rows.filter((n) => (state.inGroup === "" || row.group[n] === Number(state.inGroup)) &&
    (state.arm === "" || row.arm[n] === Number(state.arm)) && (state.label === "" || labelOf(n) === state.label) &&
    wanted.every((word) => lowered[n].includes(word)));
  return { rows, counts: rows.map((n) => whole.counts[n]) };
};
const drawTable = () => {
  const picked = passing();
  drawStatements(picked, arms.length ? ["arm"] : []);
  by("clear").hidden = picked.rows.length === triples.length;
  by("found").textContent = `${number(picked.rows.length)} of ${number(triples.length)}`;
};

// ---- the graph ----
const ofGroup = (g) => whole.rows.filter((n) => row.group[n] === g && (!arms.length || row.arm[n] === state.graphArm))
  .map((n) => ({ n, count: whole.counts[n] }));
const openGroup = (g) => set({ group: g, with: "" });
const drawGraph = () => {
  const pair = [state.group, ...(state.with === "" ? [] : [Number(state.with)])], sets = pair.map(ofGroup);
  by("caption").textContent = pair.length === 1 || pair[0] === pair[1]
    ? groupPicture(pair[0], sets[0], state.limit)
    : twoPicture(pair, sets, sets.map((list) => new Set(list.map(({ n }) => row.object[n]))), Math.max(6, Math.ceil(state.limit / 2)));
};

// ---- the controls ----
const IN_GRAPH = { "graph-group": "group", "graph-other": "with", "graph-arm": "graphArm", "graph-limit": "limit" };
const IN_TABLE = { search: "words", "filter-group": "inGroup", "filter-arm": "arm", "filter-label": "label" };
const CONTROLS = { ...IN_GRAPH, ...IN_TABLE };
const set = (changes) => {
  Object.assign(state, changes);
  if (!("page" in changes)) state.page = 0;
  for (const [id, key] of Object.entries(CONTROLS)) if (key in changes && by(id)) by(id).value = state[key];
  if (Object.keys(changes).some((key) => Object.values(IN_GRAPH).includes(key))) drawGraph();
  else drawTable();
};
const NONE = { words: "", inGroup: "", arm: "", label: "" };
// A link to statements: "#statements?group=Women&label=negative". Anyone can write an address: what it
// names that is not here is ignored.
const follow = () => {
  const [where, query] = location.hash.split("?");
  if (where !== "#statements" || query === undefined) return;
  const wanted = new URLSearchParams(query), place = (list, key) => (list.includes(wanted.get(key)) ? list.indexOf(wanted.get(key)) : "");
  const label = [...by("filter-label").options].find((o) => o.value === wanted.get("label"));
  set({ words: wanted.get("words") ?? "", inGroup: place(groups.map((g) => g.name), "group"), arm: place(arms, "arm"), label: label?.value ?? "" });
  by("statements").scrollIntoView();
};
by("filter-group").append(option("all", ""));
by("graph-other").append(option("no other", ""));
for (const id of ["filter-group", "graph-group", "graph-other"]) fillGroups(by(id), groups.map((g) => g.category));
by("filter-arm")?.append(option("all", ""));
for (const id of ["filter-arm", "graph-arm"]) by(id)?.append(...arms.map(option));
for (const [id, key] of Object.entries(CONTROLS)) {
  by(id)?.addEventListener("input", () => set({ [key]: typeof state[key] === "number" ? Number(by(id).value) : by(id).value }));
}
by("clear").addEventListener("click", () => set(NONE));
by("previous").addEventListener("click", () => set({ page: state.page - 1 }));
by("next").addEventListener("click", () => set({ page: state.page + 1 }));
addEventListener("hashchange", follow);
if (groups.length) {
  set({ group: 0, with: "", limit: state.limit });
  onWidth(by("picture"), drawGraph);
  dark.addEventListener("change", () => { palette = undefined; drawGraph(); });
}
drawTable();
follow();
