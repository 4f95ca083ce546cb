// Which statements pass the filters, and their totals. Always for one source: the counts of two arms or
// runs are never added up.
let core, lowered, said, saidAt, totals;  // set by `ready`

const ready = (columns) => {
  core = columns;
  measures = about.measures;
  texts = { group: core.group, predicate: core.predicate, object: core.object, topic: ["", ...core.topic] };
  row = {};
  for (const name of ["group", "predicate", "object", "topic", "label"]) row[name] = core[`row.${name}`];
  for (const name of ["verdict", "mark"]) if (core[`row.${name}`]) row[name] = core[`row.${name}`];
  row.measures = Object.fromEntries(about.measures.map((m) => [m.name, core[`row.${m.name}`]]));
  said = {};
  for (const name of ["count", "iteration", "strategy", "echo"]) said[name] = core[`said.${name}`];
  saidAt = begins(core["row.said"]);
  totals = new Uint32Array(about.rows);
  for (let n = 0; n < about.rows; n++) for (let k = saidAt[n]; k < saidAt[n + 1]; k++) totals[n] += said.count[k];
  row.sign = new Int8Array(about.rows);
  const signs = core.label.map((label) => SIGNS[label] ?? 0);
  for (let n = 0; n < about.rows; n++) row.sign[n] = signs[row.label[n]];
  BASE.to = state.to = Math.max(0, lastRound());
};
const lastRound = () => said.iteration.reduce((most, n) => Math.max(most, n), 0);
const labelOf = (n) => core.label[row.label[n]];
const openRows = ([n]) => set({ row: n });
const openGroup = (g) => set({ view: "group", group: g });

// For each word, the entries of a dictionary that contain it.
const held = new Map();
const holding = (kind, word) => {
  const key = `${kind} ${word}`;
  if (!held.has(key)) {
    if (held.size > 60) held.clear();
    lowered ??= {};
    const list = (lowered[kind] ??= texts[kind].map((text) => text.toLowerCase()));
    const marks = new Uint8Array(list.length);
    for (let n = 0; n < list.length; n++) if (list[n].includes(word)) marks[n] = 1;
    held.set(key, marks);
  }
  return held.get(key);
};
const inside = (polygon, x, y) => {
  let within = false;
  for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
    const [xa, ya] = polygon[a], [xb, yb] = polygon[b];
    if (ya > y !== yb > y && x < ((xb - xa) * (y - ya)) / (yb - ya) + xa) within = !within;
  }
  return within;
};
const lassoed = (polygon, map) => {
  const marks = new Uint8Array(texts.object.length);
  for (let n = 0; n < marks.length; n++) {
    if (map.home[n] && inside(polygon, map.points[2 * n], map.points[2 * n + 1])) marks[n] = 1;
  }
  return marks;
};

// The rows of a source that pass the filters, and how often each was said in the chosen rounds and by
// the chosen strategies. `but` names filters to skip.
const passing = (source, but = []) => {
  const { start, end } = about.sources[source];
  const on = (key) => !but.includes(key);
  const tests = [];
  for (const [key, column] of [["inGroup", "group"], ["predicate", "predicate"], ["object", "object"], ["topic", "topic"]]) {
    const wanted = state[key], values = row[column];
    if (on(key) && wanted >= 0) tests.push((n) => values[n] === wanted);
  }
  for (const kind of OF_OBJECTS) {
    const home = maps?.[kind]?.home;
    if (on(kind) && state[kind] >= 0 && home) tests.push((n) => home[row.object[n]] === state[kind] + 1);
  }
  if (on("regard") && state.regard) tests.push((n) => state.regard.has(row.label[n]));
  for (const key of ["verdict", "mark"]) {
    const wanted = state[key], values = row[key];
    if (on(key) && wanted && values) tests.push((n) => wanted.has(values[n]));
  }
  for (const m of about.measures) {
    const limits = bounds(m.name), values = row.measures[m.name];
    if (!limits || !on(`m.${m.name}`)) continue;
    const low = Math.round(limits[0] * m.scale), high = Math.round(limits[1] * m.scale);
    const unscored = m.name === "acceptability";  // as everywhere, a statement without a score counts
    tests.push((n) => (values[n] === NO_VALUE ? unscored : values[n] >= low && values[n] <= high));
  }
  if (on("words")) {
    for (const word of state.words.toLowerCase().split(/\s+/).filter(Boolean)) {
      const [g, p, o] = ["group", "predicate", "object"].map((kind) => holding(kind, word));
      tests.push((n) => g[row.group[n]] | p[row.predicate[n]] | o[row.object[n]]);
    }
  }
  if (on("lasso") && state.lasso && maps) {
    const marks = lassoed(state.lasso, maps[state.by]);
    tests.push((n) => marks[row.object[n]]);
  }
  const rounds = on("rounds") && (state.from > 0 || state.to < BASE.to);
  const again = rounds || !state.echoes || (on("strategy") && state.strategy);
  const rows = new Uint32Array(end - start), counts = new Uint32Array(end - start);
  let found = 0;
  next: for (let n = start; n < end; n++) {
    for (let t = 0; t < tests.length; t++) if (!tests[t](n)) continue next;
    let count = totals[n];
    if (again) {
      count = 0;
      for (let k = saidAt[n]; k < saidAt[n + 1]; k++) {
        if (rounds && (said.iteration[k] < state.from || said.iteration[k] > state.to)) continue;
        if (!state.echoes && said.echo?.[k]) continue;
        if (on("strategy") && state.strategy && !state.strategy.has(said.strategy[k])) continue;
        count += said.count[k];
      }
    }
    if (count < (on("count") ? state.count : 1)) continue;
    rows[found] = n;
    counts[found++] = count;
  }
  return { rows: rows.subarray(0, found), counts: counts.subarray(0, found) };
};

// The totals of rows by some key of theirs, a number below `size`: [{n, said, positive, negative, measured}].
const sums = (selection, size, keyOf) => {
  const all = { n: new Uint32Array(size), said: new Uint32Array(size), positive: new Uint32Array(size), negative: new Uint32Array(size), measured: new Uint32Array(size) };
  const { rows, counts } = selection;
  for (let k = 0; k < rows.length; k++) {
    const n = rows[k], key = keyOf(n);
    if (key < 0) continue;
    all.n[key] += 1;
    all.said[key] += counts[k];
    if (row.label[n]) all.measured[key] += counts[k];
    if (row.sign[n] > 0) all.positive[key] += counts[k];
    else if (row.sign[n] < 0) all.negative[key] += counts[k];
  }
  return all;
};
// Positive minus negative statements, as a share of those measured: -1 to 1, null if none was.
const net = (all, key) => (all.measured[key] ? (all.positive[key] - all.negative[key]) / all.measured[key] : null);

// The units of these maps are sets of objects with names of their own; those of the others are in the rows.
const OF_OBJECTS = ["community", "meaning"];
// The unit of a row on a map, -1 if it is on none.
const unitOf = (kind) => {
  const map = maps[kind];
  if (OF_OBJECTS.includes(kind)) return (n) => map.home[row.object[n]] - 1;
  const column = row[kind];
  return (n) => map.place[column[n]];
};
const unitName = (kind, unit) => (OF_OBJECTS.includes(kind) ? maps[kind].name[unit] : texts[kind][maps[kind].unit[unit]]);
const FILTER_OF = { group: "inGroup", predicate: "predicate", topic: "topic", community: "community", meaning: "meaning" };
const unitFilter = (kind, unit) => ({ [FILTER_OF[kind]]: OF_OBJECTS.includes(kind) ? unit : maps[kind].unit[unit] });

let maps = null;
const readyMaps = (columns) => {
  maps = {};
  for (const kind of about.maps) {
    const map = {};
    for (const name of ["unit", "centres", "radii", "home", "points", "step", "ties", "likeness", "name"]) map[name] = columns[`${kind}.${name}`];
    if (!OF_OBJECTS.includes(kind)) {
      map.place = new Int32Array(texts[kind].length).fill(-1);
      map.unit.forEach((unit, n) => { map.place[unit] = n; });
    }
    maps[kind] = map;
  }
};

// What passes now, computed once per change.
let current = null;
const selection = () => (current ??= passing(state.source));
const SET = {  // whether a filter is set: one that is not need not be skipped
  rounds: () => state.from > 0 || state.to < BASE.to, inGroup: () => state.inGroup >= 0, predicate: () => state.predicate >= 0,
  regard: () => state.regard, verdict: () => state.verdict, mark: () => state.mark, strategy: () => state.strategy,
};
const passingBut = (filters, source = state.source) => {
  const skipped = filters.filter((key) => SET[key]?.());
  return skipped.length || source !== state.source ? passing(source, skipped) : selection();
};
onChange((changes) => {
  const only = ["row", "page", "sort", "down", "table", "view", "limit", "group", "with", "colour"];
  if (Object.keys(changes).some((key) => !only.includes(key))) current = null;
});
