// Beliefs: how much likelier a statement is after a group's names than after those of the others.
const beliefsInPage = async (n) => {
  const columns = await block("beliefs"), run = runOf(n);
  return about.believers.flatMap((believer, at) => {
    if (believer.run !== run) return [];
    const k = statementAt(n, columns[`belief${at}.predicate`], columns[`belief${at}.object`]);
    return k < 0 ? [] : JSON.parse(columns[`belief${at}.rows`][k]);
  });
};
const beliefsOf = (n, beliefs) => beliefs.map(({ model, rows }) => {
  const table = make("table", null, "shares"), body = make("tbody"), heads = make("tr"), head = make("thead");
  for (const [text, className] of [["Group", ""], ["Lift", "number"], ["Names", "number"], ["q", "number"], ["", ""]]) {
    const cell = make("th", text, className);
    cell.scope = "col";
    heads.append(cell);
  }
  head.append(heads);
  const bits = (x) => bitsText(x).replace(" bits", "");
  for (const { group: of, lift, low, high, names, q_value, verdict, min_loo_lift, most_influential_name } of rows) {
    const line = make("tr", null, of === row.group[n] ? "own" : ""), name = make("th", texts.group[of], "said"), count = make("td", number(names), "number");
    name.scope = "row";
    if (most_influential_name) count.title = `without ${most_influential_name}: ${bits(min_loo_lift)} bits`;
    line.append(name, make("td", bits(lift) + (low === null ? "" : ` [${bits(low)} to ${bits(high)}]`), "number"), count,
      make("td", q_value === null ? "–" : q_value < 0.001 ? "<.001" : q_value.toFixed(3), "number"), make("td", verdict));
    body.append(line);
  }
  table.append(head, body);
  const scroll = make("div", null, "scroll");
  scroll.append(table);
  return group(`What ${model} believes`,
    make("p", "How much likelier the statement is after a group's names than after those of the others, in bits, with the 95% interval over its names; q is p against half a bit or less, corrected.", "soft"), scroll);
});
