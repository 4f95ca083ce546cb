// What is similar: to a statement, and to the words that are searched for. A page in a file holds
// the nearest statements of each; otherwise the server reads the text.
const STANCE = "Similar in topic, by the cosine of their vectors; not always in stance.";
const among = () => (!about.served && blocks.similar && meantOf > about.among ? ` Among the ${number(about.among)} said most.` : "");
let meantOf = 0;
const pairOf = (predicate, object) => predicate * texts.object.length + object;
const similarInPage = async (n) => {
  const columns = await block("similar"); meantOf = columns.predicate.length;
  const at = statementAt(n, columns.predicate, columns.object);
  if (at < 0) return [];
  columns.at ??= begins(columns["to/lengths"]);
  return Array.from({ length: columns.at[at + 1] - columns.at[at] }, (_, k) => {
    const place = columns.at[at] + k, other = columns.to[place], told = columns.cosine[place];
    return { pair: pairOf(columns.predicate[other], columns.object[other]), cosine: (told % 128) / 100, opposed: told >= 128 };
  });
};
const askServer = async (asked) => {
  const { found, problem } = await (await fetched("near", asked)).json();
  if (problem) throw new Error(problem);
  return found.map(({ row: n, ...near }) => ({ pair: pairOf(row.predicate[n], row.object[n]), ...near }));
};
// The statements with the words, whatever the other filters.
const withWords = () => passing(state.source, [...FILTERS.filter((key) => key !== "words"), "rounds", ...about.measures.map((m) => `m.${m.name}`)]).rows;
const SEEDS = 100;  // of them, whose neighbours are joined
const nearWords = async () => {
  if (about.served) return askServer({ text: state.words.slice(0, 200), source: state.source });
  const best = new Map();
  for (const n of withWords().slice(0, SEEDS)) {
    for (const near of await similarInPage(n)) if (!(best.get(near.pair)?.cosine >= near.cosine)) best.set(near.pair, near);
  }
  return [...best.values()].sort((a, b) => b.cosine - a.cosine || a.pair - b.pair);
};
const similarTo = async (n) => {
  const own = pairOf(row.predicate[n], row.object[n]);
  const found = about.served ? await askServer({ row: n }) : await similarInPage(n);
  return found.filter(({ pair }) => pair !== own);
};

// The statements among rows, each with the groups it was said of; what reads the same is one, wherever its
// predicate ends.
const nearList = (found, rows, most) => {
  const wanted = new Map(found.map(({ pair }) => [pair, []])), list = make("ul", null, "plain"), alike = new Map();
  for (const n of rows) wanted.get(pairOf(row.predicate[n], row.object[n]))?.push(n);
  for (const { pair, ...near } of found) {
    const own = wanted.get(pair);
    if (!own.length) continue;
    const text = `${textOf("predicate", own[0])} ${textOf("object", own[0])}`;
    if (!alike.has(text)) alike.set(text, { rows: [], ...near });
    alike.get(text).rows.push(...own);
  }
  const nearest = [...alike].sort(([a, one], [b, two]) => two.cosine - one.cosine || (a < b ? -1 : 1));
  for (const [text, { rows, cosine, opposed }] of nearest.slice(0, most)) {
    const groups = [...new Set(rows.map((n) => texts.group[row.group[n]]))], item = make("li");
    const others = groups.length > 2 ? ` and ${plural(groups.length - 2, "other")}` : "";
    item.append(button(text, () => set({ row: rows[0] }), "link said"),
      make("small", ` ${cosine.toFixed(2)} · about ${groups.slice(0, 2).join(", ")}${others}${opposed ? " · only one of the two says not" : ""}`));
    list.append(item);
  }
  return list;
};
const inOthers = () => (about.sources.length > 1 ? ", or not in this run and arm" : "");
const similarOf = async (n) => {
  const found = await similarTo(n), list = nearList(found, passing(sourceOf(n)).rows, 10);
  if (!found.length) return [];
  const many = found.length > 1 ? `The ${number(found.length)} that are most similar do` : "The one that is similar does";
  const told = list.children.length ? `${STANCE}${among()} Those that pass the filters.` : `${many} not pass the filters${inOthers()}.${among()}`;
  return [group("Similar statements", make("p", told, "soft"), list)];
};

// Under the table, what is near the words of the search but does not hold them.
const SLOW = 700;  // milliseconds
let lastMeant = 0;
const drawMeaning = async () => {
  const asked = ++lastMeant, part = by("by-meaning");
  if (!state.words.trim() || (!about.served && !about.columns.similar)) { part.hidden = true; return; }
  let inside;
  const slow = setTimeout(() => {
    if (asked !== lastMeant) return;
    part.hidden = false;
    part.replaceChildren(make("h2", "By meaning"), make("p", "The words are being read …", "soft"));
  }, SLOW);  // a server loads the encoder at the first search
  try {
    const found = await nearWords();
    const holds = new Set(Array.from(withWords(), (n) => pairOf(row.predicate[n], row.object[n])));
    const others = found.filter(({ pair }) => !holds.has(pair)), list = nearList(others, passing(state.source, ["words"]).rows, 10);
    const what = about.served ? "near them" : "similar to statements that have them";
    const told = list.children.length ? `Without these words, but ${what}. ${STANCE}` : `What is ${what} does not pass the filters${inOthers()}.`;
    inside = others.length ? [make("p", `${told}${among()}`, "soft"), list] : [];
  } catch (problem) { inside = [make("p", `Nothing can be found by meaning here: ${problem.message}.`, "soft")]; }
  clearTimeout(slow);
  if (asked !== lastMeant) return;
  part.hidden = !inside.length;
  part.replaceChildren(make("h2", "By meaning"), ...inside);
};
