// One state drives all pictures and tables. What differs from the default goes into the page's address,
// so that a link shows the same. Anyone can write an address: what it names that is not here is ignored.
const VIEWS = ["map", "group", "two", "differences", "path"];
const BASE = {
  view: "map", by: about.maps[0], colour: "regard", source: 0, other: Math.min(1, about.sources.length - 1),
  group: -1, with: -1, inGroup: -1, predicate: -1, object: -1, topic: -1, community: -1, meaning: -1,
  words: "", regard: null, verdict: null, mark: null, strategy: null, measures: {}, count: 1, from: 0, to: Infinity,
  echoes: !about.exclude_echoes, lasso: null, sort: "count", down: true, page: 0, table: null,
  row: -1, limit: 30,
};
const state = { ...BASE };
const listeners = [];
const onChange = (listener) => listeners.push(listener);

// The filters of a source when the page opens: statements that make no sense do not count.
const usual = () => {
  const { threshold } = about.sources[state.source];
  return threshold > 0 ? { acceptability: [threshold, 1] } : {};
};
// The bounds of a measure, or null.
const bounds = (name) => state.measures[name] ?? usual()[name] ?? null;

// Filters that choose among names, by the column that has these: their numbers differ from one reading to the next.
const SETS = { regard: "label", verdict: "verdict", mark: "mark", strategy: "strategy" };
const listed = (text) => { try { const found = JSON.parse(text); return Array.isArray(found) ? found.slice(0, 256) : []; } catch { return []; } };
const NAMED = { group: "group", with: "group", inGroup: "group", predicate: "predicate", object: "object", topic: "topic" };
// Communities, regions and places on a map belong to the data of one reading; a server reads again.
const OF_READING = ["community", "meaning", "lasso"];
const nameOf = (n) => [about.sources[sourceOf(n)].run, about.sources[sourceOf(n)].arm, ...["group", "predicate", "object"].map((kind) => texts[kind][row[kind][n]])];
const address = () => {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === BASE[key] || value === null) continue;
    if (key === "measures") {
      for (const [name, [low, high]] of Object.entries(value)) parts.set(`m.${name}`, `${low}~${high}`);
    } else if (key in NAMED) parts.set(key, texts[NAMED[key]][value]);
    else if (key === "source" || key === "other") parts.set(key, sourceKey(value));
    else if (Object.hasOwn(SETS, key)) parts.set(key, JSON.stringify([...value].map((n) => core[SETS[key]]?.[n])));
    else if (key === "lasso") parts.set(key, value.map((p) => p.map(Math.round).join("~")).join("_"));
    else if (key === "row") parts.set("statement", JSON.stringify(nameOf(value)));
    else parts.set(key, value);
  }
  if (about.served && OF_READING.some((key) => parts.has(key))) parts.set("v", about.version);
  return parts.toString();
};
const sourceKey = (n) => `${about.sources[n].run}/${about.sources[n].arm}`;

const whole = (text, low, high, otherwise) => {
  const number = Number(text);
  return text !== "" && Number.isInteger(number) && number >= low && number <= high ? number : otherwise;
};
// The row of a statement that an address names, or -1.
const rowNamed = (text) => {
  let named;
  try {
    named = JSON.parse(text);
  } catch {
    return -1;
  }
  if (!Array.isArray(named) || named.length !== 5) return -1;
  const [run, arm, ...said] = named, own = about.sources.find((s) => s.run === run && s.arm === arm);
  const [group, predicate, object] = ["group", "predicate", "object"].map((kind, n) => texts[kind].indexOf(said[n]));
  for (let n = own?.start; n < own?.end; n++) if (row.object[n] === object && row.predicate[n] === predicate && row.group[n] === group) return n;
  return -1;
};
const read = (text) => {
  const next = { ...BASE, measures: {} }, parts = new URLSearchParams(text);
  const other = (parts.get("v") ?? about.version) !== about.version;
  for (const [key, value] of parts) {
    if (other && OF_READING.includes(key)) continue;
    if (key.startsWith("m.")) {
      const pair = value.split("~").map(Number);
      const known = about.measures.some((m) => m.name === key.slice(2));
      if (known && pair.length === 2 && pair.every(Number.isFinite)) next.measures[key.slice(2)] = pair;
    } else if (Object.hasOwn(NAMED, key)) next[key] = texts[NAMED[key]].indexOf(value);
    else if (key === "source" || key === "other") {
      const place = about.sources.findIndex((_, n) => sourceKey(n) === value);
      if (place >= 0) next[key] = place;
    } else if (key === "view") next.view = VIEWS.includes(value) ? value : BASE.view;
    else if (key === "by") next.by = about.maps.includes(value) ? value : BASE.by;
    else if (key === "colour") next.colour = colourColumns().includes(value) ? value : BASE.colour;
    else if (key === "words") next.words = value.slice(0, 200);
    else if (Object.hasOwn(SETS, key)) {
      next[key] = new Set(listed(value).map((name) => (core[SETS[key]] ?? []).indexOf(name)));
    } else if (key === "lasso") {
      const points = value.split("_").map((p) => p.split("~").map(Number));
      if (points.length > 2 && points.length <= 60 && points.every((p) => p.length === 2 && p.every(Number.isFinite))) next.lasso = points;
    } else if (["echoes", "down"].includes(key)) next[key] = value === "true";
    else if (key === "statement") next.row = rowNamed(value);
    else if (["count", "from", "to", "page", "limit", "community", "meaning"].includes(key)) {
      next[key] = whole(value, key === "count" || key === "limit" ? 1 : 0, key === "limit" ? 200 : 1e9, BASE[key]);
    } else if (key === "sort") next.sort = COLUMNS.includes(value) || sortedSource(value) >= 0 || about.measures.some((m) => m.name === value) ? value : BASE.sort;
    else if (key === "table") next.table = Object.hasOwn(TABLES, value) ? value : null;
  }
  return next;
};

const keep = (method) => {
  const text = address();
  try {
    history[method](null, "", text ? `#${text}` : location.pathname + location.search);
  } catch {}  // a page in a notebook's frame has no address of its own
};
const told = (changes) => { for (const listener of listeners) listener(changes); };
// Change the state; a new view is a step that the browser's Back button undoes.
const set = (changes) => {
  const step = ["view", "group", "with", "by"].some((key) => key in changes && changes[key] !== state[key]);
  Object.assign(state, changes);
  if (!("page" in changes) && !("row" in changes && Object.keys(changes).length === 1)) state.page = 0;
  keep(step ? "pushState" : "replaceState");
  told(changes);
};
const FILTERS = [
  "inGroup", "predicate", "object", "topic", "community", "meaning", "words", "regard", "verdict", "mark", "strategy",
  "measures", "count", "from", "to", "echoes", "lasso",
];
const cleared = () => Object.fromEntries(FILTERS.map((key) => [key, key === "measures" ? {} : BASE[key]]));
