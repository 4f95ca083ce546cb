// The details of an edge: scores, who else says it, beliefs, probes, forced choices, association tests, prompts and raw answers.
const group = (title, ...inside) => {
  const part = make("section");
  part.append(make("h3", title), ...inside);
  return part;
};
const facts = (pairs) => {
  const list = make("dl");
  for (const [name, value, className] of pairs) list.append(make("dt", name), make("dd", value, className));
  return list;
};
let cameFrom = null;  // what had the focus before the details were opened
const showPanel = (title, ...inside) => {
  const heading = by("details-title"), fresh = by("details").hidden || heading.textContent !== title;
  if (fresh && !by("details").contains(document.activeElement)) cameFrom = document.activeElement;
  heading.textContent = title;
  by("details-body").replaceChildren(...inside);
  by("details").hidden = false;
  document.body.classList.add("with-details");
  if (fresh) heading.focus({ preventScroll: true });  // for the keyboard and screen readers
};
const closePanel = () => {
  if (!by("details").hidden && cameFrom) (cameFrom.isConnected ? cameFrom : nodeOf(cameFrom))?.focus({ preventScroll: true });
  by("details").hidden = true;
  document.body.classList.remove("with-details");
};

// The prompts and answers of a statement, `answers` of them read so far.
const originsOf = (n, answers) => {
  const part = make("section"), first = saidAt[n], all = saidAt[n + 1] - first;
  part.append(make("h3", all === 1 ? "The prompt and its answer" : "Prompts and answers"));
  answers.forEach(({ asked, answer, template, attempt }, k) => {
    const own = first + k, told = [core.strategy[said.strategy[own]], roundName(said.iteration[own], sourceOf(n))];
    if (attempt > 1) told.push(`attempt ${attempt}`);
    if (template) told.push(`template ${template}`);
    if (said.echo?.[own]) told.push("repeats an example of its prompt");
    if (said.count[own] > 1) told.push(`counted ${number(said.count[own])}×`);
    part.append(make("p", told.join(" · "), "soft"));
    if (asked) part.append(make("h4", "Asked"), make("pre", asked, "said"));
    part.append(make("h4", "Answered"), answer === null ? make("p", "No raw answer is kept for it.", "soft") : make("pre", answer, "said"));
  });
  if (answers.length < all) part.append(make("p", origin.more(answers.length, all), "soft"));
  if (!all) part.append(make("p", "No answer is kept for it.", "soft"));
  return part;
};

const probesOf = (n, probings) => probings.map(({ model, rows }) => group(`What ${model} finds likely`,
  make("p", "The groups before this statement, each by one name, likeliest first: the effects of the name and of the group cannot be told apart here. Above each token, its surprisal in bits: one more bit means half as probable.", "soft"), probeTable(rows, row.group[n])));
const associationsOf = (n) => {
  const ties = [["group", row.group[n]], ["object", row.object[n]], ["topic", row.topic[n] - 1]];
  const tests = about.associations.filter((t) => t.about.some(([, kind, place]) => ties.some(([k, p]) => k === kind && p === place)));
  if (!tests.length) return [];
  const list = make("ul");
  for (const t of tests) {
    const value = t.effect === null ? "–" : t.effect.toFixed(2);
    list.append(make("li", `${t.test} (${t.method}, ${t.model}): effect ${value}${t.low === null ? "" : ` [${t.low.toFixed(2)} to ${t.high.toFixed(2)}]`}${t.p === null ? "" : `, p = ${t.p.toPrecision(2)}`}`));
  }
  return [group("Association tests of its group and words", list)];
};
const sourceOf = (n) => about.sources.findIndex((s) => n >= s.start && n < s.end);
const runOf = (n) => about.sources[sourceOf(n)].run;
const elsewhere = (n) => {
  const list = make("ul"), own = sourceOf(n);
  about.sources.forEach((source, s) => {
    if (s === own) return;
    for (let k = source.start; k < source.end; k++) {
      if (row.object[k] !== row.object[n] || row.group[k] !== row.group[n] || row.predicate[k] !== row.predicate[n]) continue;
      const item = make("li");
      item.append(button(`${sourceName(s)}: said ${number(totals[k])}×`, () => set({ row: k }), "link"));
      list.append(item);
    }
  });
  return list.children.length ? [group("Also said by", list)] : [];
};

// How much likelier a statement is for its group than for the others.
const liftText = (hundredths) => (hundredths === NO_VALUE ? "–" : `${hundredths > 0 ? "+" : "−"}${(Math.abs(hundredths) / 100).toFixed(1)} bits`);
// What is believed of a group but was never said about it.
const neverSaid = (g) => {
  const own = about.never.filter((entry) => entry.group === g && entry.run === about.sources[state.source].run);
  return [...new Set(own.map((entry) => entry.verdict))].map((verdict) => {
    const list = make("ul", null, "plain");
    for (const entry of own.filter((e) => e.verdict === verdict)) {
      const item = make("li");
      item.append(make("span", `${entry.predicate} ${entry.object}`, "said"), make("small", ` ${liftText(Math.round(entry.lift * 100))}`));
      list.append(item);
    }
    return group(verdict[0].toUpperCase() + verdict.slice(1), list);
  });
};

let opened = -1;
const openRow = async (n) => {
  opened = n;
  const s = about.sources[sourceOf(n)], label = core.label[row.label[n]];
  const scores = facts([
    ["Said", `${number(totals[n])}×`],
    ...about.measures.map((m) => [m.name.replace("_", " "), shownValue(m.name, n) + (m.name === "regard" && label ? ` (${label})` : "")]),
    ...(row.topic[n] ? [["topic", texts.topic[row.topic[n]], "said"]] : []),
    ...(row.verdict ? [["verdict", core.verdict[row.verdict[n]]], ["lift", liftText(core["row.lift"][n])]] : []),
    ...(row.mark?.[n] ? [["recorded", core.mark[row.mark[n]]], ["nearest in a table", core.recorded[core["row.recorded"][n]], "said"]] : []),
    ...(core["row.story_share"]?.[n] ? [["in stories", core.story_share[core["row.story_share"][n]]]] : []),
    ["run", `${s.run}, arm ${s.arm}`], ["model", `${s.model} ${s.revision}`.trim()],
  ]);
  const ways = make("p", null, "ways");
  ways.append(
    button("This group", () => set({ view: "group", group: row.group[n] })),
    button("This object", () => openObject(row.object[n])),
    button("This predicate", () => set({ view: "map", predicate: row.predicate[n] })));
  showPanel(sentence(n), scores, ways, ...elsewhere(n), make("p", "Reading the answers …", "soft"));
  const show = (...parts) => { if (opened === n) showPanel(sentence(n), scores, ways, ...elsewhere(n), ...parts); };
  const told = (problem) => make("p", `They cannot be read now: ${problem.message}.`, "soft");
  try {
    const { answers, beliefs, probes, choices, names } = await origin.of(n), all = saidAt[n + 1] - saidAt[n];
    const alike = await similarOf(n).catch(() => []);
    const named = names ? [make("p", `It names another group (${names}): group figures and tests between groups leave it out.`, "soft")] : [];
    const showAll = (...last) => {
      const part = originsOf(n, answers);
      if (origin.next && answers.length < all) part.append(button("Further answers", next));
      part.append(...last);
      show(...named, ...beliefsOf(n, beliefs), part, ...alike, ...probesOf(n, probes), ...choicesOf(n, choices), ...associationsOf(n));
    };
    const next = async () => {
      try {
        answers.push(...await origin.next(n, answers.length));
        showAll();
      } catch (problem) { showAll(told(problem)); }
    };
    showAll();
  } catch (problem) { show(told(problem), ...associationsOf(n)); }
};

// All statements with an object, among those that pass.
const openObject = (object) => {
  const { rows, counts } = passing(state.source, ["object", "inGroup"]), list = make("ul", null, "plain");
  const own = counted({ rows, counts }, (n) => row.object[n] === object).sort((a, b) => b.count - a.count);
  for (const { n, count } of own.slice(0, 60)) {
    const item = make("li");
    item.append(button(sentence(n), () => set({ row: n }), "link said"), make("small", ` ${number(count)}× · regard ${shownValue("regard", n)}`));
    list.append(item);
  }
  opened = -1;
  const groups = new Set(own.map(({ n }) => row.group[n])).size;
  const only = make("p", null, "ways");
  only.append(button("Only statements with it", () => set({ object })));
  showPanel(texts.object[object], make("p", `${plural(own.length, "statement")} about ${plural(groups, "group")}.`, "soft"), only, list);
};
// A unit of a map: what it is, and where to go from it.
const openUnit = (kind, unit) => {
  const all = sums(selection(), maps[kind].unit.length, unitOf(kind)), ways = make("p", null, "ways");
  const n = OF_OBJECTS.includes(kind) ? -1 : maps[kind].unit[unit];
  if (kind === "group") {
    ways.append(button("Its neighbourhood", () => set({ view: "group", group: n })),
      button(`With ${short(texts.group[state.with < 0 || state.with === n ? firstOther(n) : state.with], 24)}`, () => set({ view: "two", group: n, with: state.with < 0 || state.with === n ? firstOther(n) : state.with })));
  }
  ways.append(button("Only this", () => set(unitFilter(kind, unit))));
  const ofUnit = unitOf(kind), list = make("ul", null, "plain");
  const own = counted(selection(), (n) => ofUnit(n) === unit).sort((a, b) => b.count - a.count || a.n - b.n).slice(0, 25);
  for (const { n: at, count } of own) {
    const item = make("li");
    item.append(button(sentence(at), () => set({ row: at }), "link said"), make("small", ` ${number(count)}×`));
    list.append(item);
  }
  opened = -1;
  showPanel(unitName(kind, unit), facts([["statements", number(all.n[unit])], ["said", `${number(all.said[unit])}×`], ["positive minus negative", netText(net(all, unit))]]), ways, group("Said most often", list), ...(kind === "group" ? [...neverSaid(n), ...chosenFor(n)] : []));
};
const firstOther = (g) => {
  const map = maps.group, at = map.place[g];
  let best = -1, like = -1;
  for (let n = 0; n < map.likeness.length; n++) {
    const [a, b] = [map.ties[2 * n], map.ties[2 * n + 1]];
    if ((a === at || b === at) && map.likeness[n] > like) { like = map.likeness[n]; best = a === at ? b : a; }
  }
  return best >= 0 ? map.unit[best] : (g + 1) % texts.group.length;
};
