// Colour by a column. A dot or a disc stands for several statements: a name's colour is that of what is
// said most, a number's that of the mean. "regard" is positive minus negative.
const PALETTE = ["#3b78b8", "#cf6a1f", "#1d8a6b", "#7a4fa3", "#b8901f", "#c2456f", "#3a9fbf", "#8a6a4f"];
const OTHER = PALETTE.length;  // every name after those said most

// The columns that have names: the name of each row by its number, and whether 0 is the name of none.
const firstSaid = (column) => Uint8Array.from(totals, (_, n) => column[saidAt[n]] ?? 0);
const NAMES = {
  group: () => ({ values: row.group, names: texts.group }),
  predicate: () => ({ values: row.predicate, names: texts.predicate }),
  topic: () => ({ values: row.topic, names: texts.topic, none: true }),
  verdict: () => row.verdict && { values: row.verdict, names: core.verdict },
  mark: () => row.mark && { values: row.mark, names: core.mark },
  strategy: () => ({ values: firstSaid(said.strategy), names: core.strategy }),
};
const nameColumns = {};
// A column of names, and the place of each name among those that a source says most: OTHER from the ninth on.
const namesOf = (key) => (nameColumns[`${state.source} ${key}`] ??= (() => {
  const column = NAMES[key](), often = new Uint32Array(column.names.length), { start, end } = about.sources[state.source];
  for (let n = start; n < end; n++) often[column.values[n]] += totals[n];
  if (column.none) often[0] = 0;
  const order = [...often.keys()].filter((v) => often[v]).sort((a, b) => often[b] - often[a] || a - b);
  const place = new Uint8Array(column.names.length).fill(OTHER);
  order.slice(0, OTHER).forEach((v, at) => { place[v] = at; });
  return { ...column, order, place };
})());
// A column of numbers: the value of a row, null if it has none, and the least and the most.
const numbersOf = (key) => {
  if (key === "count") return { of: (n) => Math.log2(totals[n]), low: 0, high: Math.log2(totals.reduce((a, b) => Math.max(a, b), 2)), text: (v) => `${number(Math.round(2 ** v))}×` };
  const measure = measureOf(key), [low, high] = histograms[key] ? [histograms[key].low, histograms[key].high] : [0, 1];
  return { of: (n) => valueOf(key, n), low, high, text: (v) => shownNumber(measure, v) };
};
const COLOUR_NAMES = { regard: "regard", group: "group", predicate: "predicate", topic: "topic", verdict: "verdict", mark: "known or new", strategy: "strategy", count: "times said" };
// The columns to choose from: those in which rows differ.
const colourColumns = () => {
  const own = Object.keys(NAMES).filter((key) => NAMES[key]() && new Set(NAMES[key]().values).size > 1);
  const measured = about.measures.map((m) => m.name).filter((name) => name !== "regard" && histograms[name]);
  return ["regard", ...own, ...measured, "count"];
};

const nameColour = (place) => {
  const { neutral, ink } = colours();
  return place === OTHER ? neutral : dark.matches ? mix(PALETTE[place], ink, 0.25) : PALETTE[place];
};
const numberColour = ({ low, high }, value) => {
  const { neutral, page, accent } = colours();
  if (value === null) return neutral;
  if (low < 0) return netColour(value / Math.max(-low, high));
  return mix(mix(page, accent, 0.25), mix(accent, colours().ink, 0.35), Math.min(1, Math.max(0, (value - low) / (high - low || 1))));
};
rowColour = (n) => {
  const key = state.colour;
  if (key === "regard") return signColour(n);
  if (!Object.hasOwn(NAMES, key)) return numberColour(numbersOf(key), numbersOf(key).of(n));
  const { values, place } = namesOf(key);
  return nameColour(place[values[n]]);
};
// The colour of each key (a number below `size`) of the rows of a selection; `all` are their sums.
const keyColours = (found, all, size, keyOf) => {
  const key = state.colour, { rows, counts } = found;
  if (key === "regard") return (at) => netColour(net(all, at));
  if (Object.hasOwn(NAMES, key)) {
    const { values, place } = namesOf(key), wide = OTHER + 1, often = new Uint32Array(size * wide);
    for (let k = 0; k < rows.length; k++) if (keyOf(rows[k]) >= 0) often[keyOf(rows[k]) * wide + place[values[rows[k]]]] += counts[k];
    return (at) => {
      const own = often.subarray(at * wide, (at + 1) * wide);
      return nameColour(own.indexOf(Math.max(...own)));
    };
  }
  const column = numbersOf(key), sum = new Float64Array(size), weight = new Float64Array(size);
  for (let k = 0; k < rows.length; k++) {
    const value = column.of(rows[k]), at = keyOf(rows[k]);
    if (value === null || at < 0) continue;
    sum[at] += value * counts[k];
    weight[at] += counts[k];
  }
  return (at) => numberColour(column, weight[at] ? sum[at] / weight[at] : null);
};

// What the colours mean, as [colour, words] each, on the page and in a saved picture.
const legendOf = () => {
  const { first, second, neutral, negative, positive } = colours(), key = state.colour;
  if (state.view === "differences") return [[first, "only the first"], [neutral, "both"], [second, "only the second"]];
  if (key === "regard") return [[negative, "negative"], [neutral, "neutral"], [positive, "positive"]];
  if (!Object.hasOwn(NAMES, key)) {
    const column = numbersOf(key);
    return [0, 0.25, 0.5, 0.75, 1].map((share) => column.low + share * (column.high - column.low)).map((v) => [numberColour(column, v), column.text(v)])
      .filter(([, text], n, all) => !n || text !== all[n - 1][1]);
  }
  const { names, order } = namesOf(key);
  return [...order.slice(0, OTHER).map((v, at) => [nameColour(at), short(names[v] || "none", 30)]), ...(order.length > OTHER ? [[neutral, "others"]] : [])];
};
const drawLegend = () => by("legend").replaceChildren(...legendOf().map(([tone, words]) => {
  const entry = make("span"), swatch = make("i");
  swatch.style.background = tone;
  entry.append(swatch, make("span", words, "said"));
  return entry;
}));
