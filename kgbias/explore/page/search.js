// Search: completes what is typed to groups, predicates, topics and objects, allowing for typing errors;
// Enter without a choice finds the statements that contain the words.
const LETTERS = { g: "group", p: "predicate", t: "topic", o: "object" };
const found = { index: null, options: [], at: -1 };

// Of a dictionary with more names, only those in the most statements are completed; a search for words
// finds all.
const INDEXED = 100_000;
const leastOf = (often, most) => (often.length > most ? often.toSorted()[often.length - most] : 0);

// The names are indexed when the page is idle, or at the first keystroke.
const searchIndex = () => {
  if (found.index) return found.index;
  const index = new libraries.MiniSearch({ fields: ["text"], searchOptions: { prefix: true, fuzzy: (word) => (word.length > 4 ? 0.2 : 0), combineWith: "AND" } });
  const often = { o: new Uint32Array(texts.object.length), p: new Uint32Array(texts.predicate.length), g: new Uint32Array(texts.group.length), t: new Uint32Array(texts.topic.length) };
  for (let n = 0; n < about.rows; n++) {
    for (const [letter, kind] of Object.entries(LETTERS)) often[letter][row[kind][n]] += 1;
  }
  for (const [letter, kind] of Object.entries(LETTERS)) {
    const least = leastOf(often[letter], INDEXED);
    texts[kind].forEach((text, n) => { if (text && often[letter][n] > least) index.add({ id: letter + n, text: text.slice(0, 200) }); });
  }
  found.often = often;
  return (found.index = index);
};
const BOOST = { g: 8, t: 3, p: 2, o: 1 };
const complete = (text) => {
  if (!text.trim()) return [];
  const boost = (id) => BOOST[id[0]] * (1 + Math.log2(1 + found.often[id[0]][id.slice(1)]) / 8);
  return searchIndex().search(text, { boostDocument: boost }).slice(0, 9).map(({ id }) => ({ kind: LETTERS[id[0]], n: Number(id.slice(1)) }));
};
// The nearest name or text to words that nothing holds: what completes them first, if anything does.
const nearest = (words) => {
  const [first] = complete(words);
  if (first) return first;
  const [hit] = searchIndex().search(words, { fuzzy: 0.34, combineWith: "OR", boostDocument: (id) => BOOST[id[0]] });
  return hit && { kind: LETTERS[hit.id[0]], n: Number(hit.id.slice(1)) };
};
// A sentence for words that no statement holds; its last words lead to the nearest there is.
const holdsNothing = (words) => {
  const near = nearest(words), told = `No statement that passes the filters holds “${short(words.trim(), 60)}”.`;
  const text = near && texts[near.kind][near.n];
  if (!near || text.toLowerCase().includes(words.trim().toLowerCase())) return [told];  // the filters hide what holds it
  return [`${told} The nearest is `, button(short(text, 60), () => set({ words: text }), "link said"), "."];
};
const choose = ({ kind, n }) => {
  by("search").value = "";
  closeOptions();
  if (kind === "group") set({ view: "group", group: n, words: "" });
  else if (kind === "object") openObject(n);
  else set({ [kind]: n, words: "" });
};
const closeOptions = () => {
  found.options = [];
  found.at = -1;
  by("options").hidden = true;
  by("search").setAttribute("aria-expanded", false);
  by("search").removeAttribute("aria-activedescendant");
};
const mark = (at) => {
  found.at = at;
  [...by("options").children].forEach((item, n) => item.setAttribute("aria-selected", n === at));
  if (at >= 0) by("search").setAttribute("aria-activedescendant", `option-${at}`);
  else by("search").removeAttribute("aria-activedescendant");
};
const showOptions = () => {
  const text = by("search").value.trim();
  found.options = complete(text);
  const near = text && !found.options.length ? nearest(text) : null;
  if (near) found.options = [near];
  by("options").replaceChildren(...found.options.map((entry, n) => {
    const item = make("li");
    item.id = `option-${n}`;
    item.setAttribute("role", "option");
    const often = found.often[entry.kind[0]][entry.n];
    item.append(make("span", texts[entry.kind][entry.n], "said"), make("small", `${near ? "nearest " : ""}${entry.kind} · ${number(often)}`));
    item.addEventListener("pointerdown", (event) => { event.preventDefault(); choose(entry); });
    return item;
  }));
  by("options").hidden = !found.options.length;
  by("search").setAttribute("aria-expanded", found.options.length > 0);
  mark(-1);
};
const startSearch = () => {
  const input = by("search");
  let waiting = 0;
  input.addEventListener("focus", () => searchIndex());
  input.addEventListener("input", () => {
    showOptions();
    clearTimeout(waiting);
    waiting = setTimeout(() => set({ words: input.value }), 120);
  });
  input.addEventListener("blur", closeOptions);
  input.addEventListener("keydown", (event) => {
    const last = found.options.length - 1;
    if (event.key === "ArrowDown" && last >= 0) mark(found.at >= last ? 0 : found.at + 1);
    else if (event.key === "ArrowUp" && last >= 0) mark(found.at <= 0 ? last : found.at - 1);
    else if (event.key === "Escape") closeOptions();
    else if (event.key === "Enter") {
      clearTimeout(waiting);
      if (found.at >= 0) choose(found.options[found.at]);
      else { closeOptions(); set({ words: input.value, table: "statements" }); }
    } else return;
    event.preventDefault();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    input.focus();
  });
  (window.requestIdleCallback ?? setTimeout)(() => searchIndex());
};
