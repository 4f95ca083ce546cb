// Where a statement comes from: {answers: [{asked, answer, template, attempt}], probes: [{model, rows: [{group,
// rank, bits, pieces, surprisal}]}], beliefs, choices, names}. A page in a file holds the first answers of each; otherwise the server is asked.
const answersInPage = async (n) => {
  const columns = await block("origins");
  columns.at ??= begins(columns["row.kept"]);
  columns.lines ??= begins(columns["text/lengths"]);
  const text = (id) => Array.from(columns.text.subarray(columns.lines[id], columns.lines[id + 1]), (line) => columns["text/line"][line]).join("\n");
  return Array.from({ length: columns.at[n + 1] - columns.at[n] }, (_, k) => {
    const at = columns.at[n] + k, answer = columns["kept.answer"][at];
    return {
      asked: text(columns["kept.prompt"][at]), answer: answer ? text(answer - 1) : null,
      template: columns.template[columns["kept.template"][at]], attempt: columns["kept.attempt"][at],
    };
  });
};
// The place of a row's statement among statements ordered by predicate and object, or -1.
const statementAt = (n, predicate, object) => {
  let low = 0, high = predicate.length;
  const before = (k) => predicate[k] < row.predicate[n] || (predicate[k] === row.predicate[n] && object[k] < row.object[n]);
  while (low < high) { const middle = (low + high) >> 1; if (before(middle)) low = middle + 1; else high = middle; }
  return predicate[low] === row.predicate[n] && object[low] === row.object[n] ? low : -1;
};
const probesInPage = async (n) => {
  const columns = await block("probes"), run = runOf(n);
  return about.probed.flatMap((probing, at) => {
    if (probing.run !== run) return [];
    const name = `probe${at}`, predicate = columns[`${name}.predicate`], object = columns[`${name}.object`];
    const first = statementAt(n, predicate, object);
    if (first < 0) return [];
    const begin = (columns[`${name}.at`] ??= begins(columns[`${name}.piece/lengths`])), rows = [];
    for (let k = first; k < predicate.length && predicate[k] === row.predicate[n] && object[k] === row.object[n]; k++) {
      const tokens = Array.from({ length: begin[k + 1] - begin[k] }, (_, t) => begin[k] + t);
      rows.push({
        group: columns[`${name}.group`][k], rank: columns[`${name}.rank`][k], bits: columns[`${name}.bits`][k] / 10,
        pieces: tokens.map((t) => columns.piece[columns[`${name}.piece`][t]]),
        surprisal: tokens.map((t) => columns[`${name}.surprisal`][t] / 10),
      });
    }
    return [{ model: probing.model, rows }];
  });
};
const namesInPage = async (n) => {
  const columns = await block("origins"), at = columns["names.row"].indexOf(n);
  return at < 0 ? "" : columns["names.others"][at];
};
const inPage = {
  of: async (n) => ({ answers: await answersInPage(n), probes: await probesInPage(n), beliefs: await beliefsInPage(n), choices: await choicesInPage(n), names: await namesInPage(n) }),
  more: (kept, all) => `${number(kept)} of ${plural(all, "answer")} ${kept === 1 ? "is" : "are"} in this page; the others were left out to keep it small. The store holds all of them: use kgbias export, or the run's generations.`,
};
const onServer = {
  of: async (n) => (await fetched(`statement/${n}`)).json(),
  next: async (n, first) => (await (await fetched(`statement/${n}`, { first })).json()).answers,
  more: (kept, all) => `${number(kept)} of ${plural(all, "answer")}.`,
};
const origin = about.served ? onServer : inPage;
