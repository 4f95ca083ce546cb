// The views that draw a few of the statements that pass the filters.
// Rows as objects {n, count}: the wanted ones among all that pass.
const counted = ({ rows, counts }, meant = () => true) => {
  const list = [];
  for (let k = 0; k < rows.length; k++) if (meant(rows[k])) list.push({ n: rows[k], count: counts[k] });
  return list;
};
const ofGroup = (g) => counted(passingBut(["inGroup"]), (n) => row.group[n] === g);
const drawGroup = () => groupPicture(state.group, ofGroup(state.group), state.limit);
const most = () => Math.max(6, Math.ceil(state.limit / 2));  // in a column
const drawTwo = () => {
  const pair = [state.group, state.with], ever = [new Set(), new Set()], { start, end } = about.sources[state.source];
  for (let n = start; n < end; n++) pair.forEach((g, s) => { if (row.group[n] === g) ever[s].add(row.object[n]); });
  return twoPicture(pair, pair.map(ofGroup), ever, most());
};

const sourceName = (n) => {
  const s = about.sources[n], arms = about.sources.filter((o) => o.run === s.run).length > 1;
  const languages = new Set(about.sources.map((o) => o.language)).size > 1;
  return [s.run, arms && s.arm, languages && s.language].filter(Boolean).join(" · ");
};
const tripleKey = (n) => (row.group[n] * texts.predicate.length + row.predicate[n]) * texts.object.length + row.object[n];
const drawDifferences = () => {
  const { first, second, neutral } = colours(), pair = [state.source, state.other];
  const pill = (s, id, tone) => ({ id, label: sourceName(s), pill: true, tone, told: `${sourceName(s)}, ${about.sources[s].model}`, open: () => set({ source: s, view: "map" }) });
  return besidePicture({
    sets: pair.map((s) => counted(passing(s)).sort(bySaid)), ever: pair.map(rowsByKey), most: most(),
    keyOf: tripleKey,
    names: pair.map(sourceName),
    pills: [pill(state.source, "pill0", first), pill(state.other, "pill1", second)],
    labelOf: ([{ n }]) => ({ lead: state.inGroup < 0 ? textOf("group", n) : "", label: `${textOf("predicate", n)} ${textOf("object", n)}` }),
    toneOf: (s, side) => ({ tone: side === "both" ? neutral : s ? second : first, dashed: side === "second" }),
    caption: (t) => `${plural(t.first, "statement")} only in ${short(sourceName(state.source), 40)}, ${number(t.both)} in both, ${number(t.second)} only in ${short(sourceName(state.other), 40)}; those said most often are drawn.`,
  });
};

// The shortest paths from one group to another, over objects that were said of both ends of each step.
const drawPath = () => {
  if (state.group === state.with) return drawNone("Choose two different groups: a path leads from one to the other.");
  const found = counted(passingBut(["inGroup"])), near = { g: new Map(), o: new Map() };
  for (const { n, count } of found) {
    const g = row.group[n], o = row.object[n];
    if (!near.g.has(g)) near.g.set(g, new Map());
    if (!near.o.has(o)) near.o.set(o, new Map());
    const best = near.g.get(g).get(o);
    if (!best || best.count < count) { near.g.get(g).set(o, { n, count }); near.o.get(o).set(g, { n, count }); }
  }
  const levels = [new Map([[state.group, null]])], seen = { g: new Set([state.group]), o: new Set() };
  let kind = "g";
  while (levels.at(-1).size && !(kind === "g" && levels.at(-1).has(state.with))) {
    const next = new Map(), other = kind === "g" ? "o" : "g";
    for (const id of levels.at(-1).keys()) for (const end of near[kind].get(id)?.keys() ?? []) if (!seen[other].has(end)) next.set(end, null);
    for (const id of next.keys()) seen[other].add(id);
    levels.push(next);
    kind = other;
  }
  const a = short(texts.group[state.group], 40), b = short(texts.group[state.with], 40);
  if (!levels.at(-1).size) return drawNone(`No path leads from ${a} to ${b} over the statements that pass the filters.`);
  // Back from the end: only what leads there, and of that the strongest at each level.
  levels[levels.length - 1] = new Map([[state.with, null]]);
  const strength = (kind, id, ends) => Math.max(0, ...[...ends].map((end) => near[kind].get(id).get(end)?.count ?? 0));
  for (let level = levels.length - 2; level > 0; level--) {
    const k = level % 2 ? "o" : "g", after = levels[level + 1], ends = new Set(after.keys());
    const leading = [...levels[level].keys()].filter((id) => [...near[k].get(id).keys()].some((end) => ends.has(end)));
    leading.sort((x, y) => strength(k, y, ends) - strength(k, x, ends) || x - y);
    levels[level] = new Map(leading.slice(0, Math.max(4, Math.round(state.limit / 2))).map((id) => [id, null]));
  }
  for (let level = 1; level < levels.length; level++) {  // what no longer leads from the start
    const k = level % 2 ? "o" : "g", before = levels[level - 1];
    for (const id of [...levels[level].keys()]) if (![...near[k].get(id).keys()].some((end) => before.has(end))) levels[level].delete(id);
  }
  const links = [], last = levels.length - 1;
  const columns = levels.map((level, at) => ({
    share: at / last, room: 0.9 / levels.length, align: at === 0 ? "start" : at === last ? "end" : "middle",
    nodes: [...level.keys()].map((id) => {
      const k = at % 2 ? "o" : "g";
      if (at > 0) for (const end of levels[at - 1].keys()) {
        const tie = near[k].get(id).get(end);
        if (tie) links.push(linkTo(`${at - 1} ${end}`, `${at} ${id}`, tie.n, tie.count));
      }
      if (k === "g") return { ...groupNode(`${at} ${id}`, id), id: `${at} ${id}` };
      const rows = [...near.o.get(id).values()];
      return { id: `${at} ${id}`, label: texts.object[id], told: `${texts.object[id]}: ${rows.slice(0, 6).map((e) => sentence(e.n)).join("; ")}`, open: () => openObject(id) };
    }),
  }));
  layered(columns, links, `Paths from ${a} to ${b}`);
  return `The shortest paths from ${a} to ${b}: ${plural(last, "step")}, over what is said of both ends of each.`;
};
const PICTURES = { group: drawGroup, two: drawTwo, differences: drawDifferences, path: drawPath };
