// Forced choices: which group a model took a statement to be about when it had to choose.
const choicesInPage = async (n) => {
  const columns = await block("choices"), run = runOf(n);
  return about.choosers.flatMap((chooser, at) => {
    if (chooser.run !== run) return [];
    const k = statementAt(n, columns[`choice${at}.predicate`], columns[`choice${at}.object`]);
    return k < 0 ? [] : JSON.parse(columns[`choice${at}.rows`][k]);
  });
};
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(0)}%`);
const within = ({ low, high }) => (low === null || high === null ? "" : ` [${(100 * low).toFixed(0)} to ${(100 * high).toFixed(0)}]`);
const bitsText = (bits) => (bits === null ? "–" : `${bits > 0 ? "+" : bits < 0 ? "−" : ""}${Math.abs(bits).toFixed(1)} bits`);

// A share with its interval, and the base rate of the group as a tick.
const shareMark = ({ share, low, high, base }, own) => {
  const { accent, ink, line } = colours(), x = (v) => 4 + 62 * v;
  const picture = svg("svg", { viewBox: "0 0 70 14", width: 70, height: 14, "aria-hidden": true });
  picture.append(svg("line", { x1: 4, x2: 66, y1: 7, y2: 7, stroke: line }));
  if (base !== null) picture.append(svg("line", { x1: x(base), x2: x(base), y1: 1, y2: 13, stroke: ink, "stroke-opacity": 0.55 }));
  if (low !== null && high !== null) picture.append(svg("line", { x1: x(low), x2: x(high), y1: 7, y2: 7, stroke: accent, "stroke-width": 2.5 }));
  if (share !== null) picture.append(svg("circle", { cx: x(share), cy: 7, r: own ? 4 : 3, fill: accent }));
  return picture;
};
const quotedAnswers = (list) => list.map(([text, count]) => `“${text}” ${number(count)}×`).join(", ");
const choicesOf = (n, choices) => choices.map(({ model, category, options, rows, unread }) => {
  const table = make("table", null, "shares"), body = make("tbody"), heads = make("tr"), head = make("thead");
  for (const [text, className] of [["Group", ""], ["Chosen", "number"], ["", ""], ["Lift", "number"], ["q", "number"]]) {
    const cell = make("th", text, className);
    cell.scope = "col";
    heads.append(cell);
  }
  head.append(heads);
  for (const entry of rows) {
    const own = entry.group === row.group[n], line = make("tr", null, own ? "own" : ""), name = make("th", texts.group[entry.group], "said"), mark = make("td");
    name.scope = "row";
    mark.append(shareMark(entry, own));
    const share = make("td", percent(entry.share) + within(entry), "number");
    share.title = `${number(entry.chosen)} of ${number(entry.answered)} answers`;
    line.append(name, share, mark, make("td", bitsText(entry.lift).replace(" bits", ""), "number"), make("td", entry.q === null ? "–" : entry.q < 0.001 ? "<.001" : entry.q.toFixed(3), "number"));
    body.append(line);
  }
  table.append(head, body);
  const scroll = make("div", null, "scroll"), told = make("dl");
  scroll.append(table);
  for (const { group: of, answers } of rows) if (answers.length) told.append(make("dt", texts.group[of], "said"), make("dd", quotedAnswers(answers), "said"));
  if (unread.length) told.append(make("dt", "not read"), make("dd", quotedAnswers(unread), "said"));
  const all = rows.map(({ answered }) => answered), [least, most] = [Math.min(...all), Math.max(...all)];
  return group(`What ${model} chooses${category ? ` among ${category}` : ""}`,
    make("p", `Which group is it about? Of the readable answers to questions that offered the group (${least === most ? number(least) : `${number(least)} to ${number(most)}`}, at most ${options} groups at a time), the share that named it, with its 95% interval. The tick is its share over all statements. The lift is in bits${rows.some(({ names }) => names > 1) ? ", for a group with several names over the names, against the other groups" : ", over that share"}.`, "soft"),
    scroll, make("h4", "Answers"), told);
});

// What a group is chosen for: its base rate, and the statements that stand out.
const chosenFor = (g) => about.choosers.filter(({ run }) => run === about.sources[state.source].run).flatMap(({ model, base, telling }) => {
  const rate = base.find((entry) => entry.group === g);
  if (!rate) return [];
  const list = make("ul", null, "plain");
  for (const entry of telling.filter((e) => e.group === g)) {
    const item = make("li"), text = `${texts.predicate[entry.predicate]} ${texts.object[entry.object]}`, n = statementRow(entry);
    item.append(n < 0 ? make("span", text, "said") : button(text, () => set({ row: n }), "link said"), make("small", ` ${percent(entry.share)}${within(entry)}, ${bitsText(entry.lift)}`));
    list.append(item);
  }
  return [group(`When ${model} has to choose`,
    make("p", `It takes ${percent(rate.value)}${within(rate)} of the statements to be about this group: over ${plural(rate.n, "answer")}, with at most ${rate.options} groups at a time, so chance is ${percent(1 / rate.options)}.`, "soft"),
    ...(list.children.length ? [make("p", "Chosen for these more often than for other statements:", "soft"), list] : []))];
});
// A row with a statement: about this group if there is one, or else about another.
const statementRow = ({ group: g, predicate, object }) => {
  const { start, end } = about.sources[state.source];
  let found = -1;
  for (let n = start; n < end; n++) {
    if (row.predicate[n] !== predicate || row.object[n] !== object) continue;
    if (row.group[n] === g) return n;
    if (found < 0) found = n;
  }
  return found;
};
