// The report's search in plain words, as kgbias.ask reads questions: offline, by shared words, and by what is
// similar to what they find.
(() => {
  const own = JSON.parse(by("ask-data").textContent);
  const aside = new Set(own.aside), ordinary = new Set(own.ordinary), persons = new Set(own.persons);
  const WORD = /[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu;
  const SHOWN = 20, NEAREST = 5, SEEDS = 100, SIMILAR = 10;

  const words = (text) => [...text.matchAll(WORD)].map((m) => m[0].toLowerCase().replaceAll("’", "'"));
  const topic = (text) => [...new Set(words(text).filter((w) => !aside.has(w)))];
  // As kgbias.language.words.lemma, which says why.
  const irregular = new Map(Object.entries(own.irregular));
  const lemma = (said) => {
    const word = said.replace(/'s$/, "").replace(/'$/, "");
    if (irregular.has(word)) return irregular.get(word);
    if (/ie[sd]$/.test(word)) return word.length > 4 ? word.slice(0, -3) + "y" : word.slice(0, -1);
    if (/(?:ss|sh|ch|x|zz|[^aeiou]o)es$/.test(word)) return word.slice(0, -2);
    if (/[^sui]s$/.test(word) && word.length > 3) return word.slice(0, -1);
    const found = /^(.*[aeiouy].*)(?:ing|(?<!e)ed)$/.exec(word);
    if (!found || found[1].length < 2) return word;
    const base = found[1];
    if (/([bdgmnprt])\1$/.test(base)) return base.slice(0, -1);
    return /^[^aeiouy]*[aeiouy][^aeiouywx]$/.test(base) ||
      /(?:[vcuz]|[aeiou]s|[bptdgk]l|[dr]g|[aeiouy].*[^aeiouy](?:at|ag|ir))$/.test(base)
      ? base + "e" : base;
  };
  const forms = (name) => {
    const found = [name];
    if (/\b(wo)?men$/i.test(name)) found.push(name.slice(0, -2) + "an");
    else if (/ people$/i.test(name)) found.push(name.slice(0, -6) + "person", name.slice(0, -7) + "s");
    else if (/[^s]s$/i.test(name) && name.length > 3) found.push(name.slice(0, -1));
    return found;
  };
  const pattern = (form) =>
    new RegExp("(?<![\\p{L}\\p{N}-])" +
      form.split(/[\s-]+/).map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("[\\s-]+") +
      "(?![\\p{L}\\p{N}-])", "giu");

  // Where groups are named; those that the run lacks only by whole names or before a word for persons.
  const spansOf = (text, groups, ofPersons) => {
    const spans = [];
    groups.forEach((names) => names.forEach((name) => {
      const bare = name.replace(/\s+people$/i, "");
      for (const form of new Set([...forms(name), bare]))
        for (const m of text.matchAll(pattern(form))) {
          const strict = ofPersons && form === bare && bare !== name;
          const next = words(text.slice(m.index + m[0].length))[0];
          const inside = !ofPersons && /^\p{Lu}/u.test(m[0]) && text.slice(0, m.index).trim();
          if ((!ordinary.has(m[0].toLowerCase()) && !strict) || persons.has(next) || inside)
            spans.push([m.index, m.index + m[0].length, names]);
        }
    }));
    return spans;
  };

  // Which groups a text names: the longest of names that overlap.
  const read = (text) => {
    const spans = [...spansOf(text, own.names, false), ...spansOf(text, own.absent, true)];
    spans.sort((a, b) => b[1] - b[0] - (a[1] - a[0]) || a[0] - b[0]);
    const taken = [], groups = new Set(), absent = new Set();
    let left = text;
    for (const [start, end, names] of spans) {
      const overlaps = taken.filter(([a, b]) => start < b && a < end);
      if (overlaps.length && !overlaps.some(([a, b]) => a === start && b === end)) continue;
      taken.push([start, end]);
      const place = own.names.indexOf(names);
      if (place < 0) absent.add(names);
      else {
        groups.add(place);
        left = left.slice(0, start) + " ".repeat(end - start) + left.slice(end);
      }
    }
    return { groups, absent: own.absent.filter((names) => absent.has(names)), topic: topic(left) };
  };

  // The index: for each lemma, the statements that contain it.
  const index = new Map();
  triples.forEach((t, n) => {
    for (const word of new Set(topic(`${t.predicate} ${t.object}`).map(lemma))) {
      if (!index.has(word)) index.set(word, []);
      index.get(word).push(n);
    }
  });

  // Triples that are one sentence are one statement, with the counts and answers of all; in rows that begin
  // with a triple.
  const once = (rows) => {
    const whole = new Map();
    for (const [t, ...rest] of rows) {
      const key = `${t.group} ${t.arm} ${t.predicate} ${t.object}`.toLowerCase(), own = whole.get(key)?.[0];
      whole.set(key, [own ? { ...own, count: own.count + t.count, from: [...own.from, ...t.from] } : t, ...rest]);
    }
    return [...whole.values()];
  };

  const retrieve = (question) => {
    const { groups, absent, topic: wanted } = read(question);
    const about = (t) => !groups.size || groups.has(t.group);
    if (!wanted.length)
      return { groups, absent, wanted, found: groups.size
        ? once(triples.filter(about).map((t) => [t, 0, []])).sort((a, b) => b[0].count - a[0].count) : [] };
    const scores = new Map();
    for (const word of wanted) {
      const rows = index.get(lemma(word)) || [];
      const weight = Math.log(1 + triples.length / (1 + rows.length));
      for (const n of rows) if (about(triples[n])) {
        const [score, held] = scores.get(n) || [0, []];
        scores.set(n, [score + weight, [...held, word]]);
      }
    }
    let found = once([...scores].map(([n, [score, held]]) => [triples[n], score, held]));
    if (absent.length && !groups.size)
      found = found.filter(([t]) => spansOf(`${t.predicate} ${t.object}`, absent, true).length);
    found.sort((a, b) => b[1] - a[1] || b[0].count - a[0].count);
    return { groups, absent, wanted, found };
  };

  const node = (tag, text, parent) => {
    const element = make(tag, text);
    parent.append(element);
    return element;
  };
  // Statements similar to those found, that do not share a word with the question: the nearest of each are
  // in the page.
  const byMeaning = (found, wanted, groups, panel) => {
    const there = new Set(found.map(([t]) => t.statement)), best = new Map();
    for (const statement of [...there].slice(0, SEEDS))
      for (const [place, told] of page.similar[firstOf.get(statement)] ?? []) {
        const other = triples[place].statement;
        if (!there.has(other) && !(Math.abs(best.get(other) ?? 0) >= Math.abs(told))) best.set(other, told);
      }
    if (!wanted.length || !best.size) return;
    const near = once(triples.filter((t) => best.has(t.statement) && (!groups.size || groups.has(t.group))).map((t) => [t]))
      .map(([t]) => t).sort((a, b) => Math.abs(best.get(b.statement)) - Math.abs(best.get(a.statement)) || b.count - a.count).slice(0, SIMILAR);
    if (!near.length) return;
    node("p", "By meaning: without these words, but similar to the statements above (in topic, not always in stance):", panel);
    const cosine = (t) => `similar (${(Math.abs(best.get(t.statement)) / 100).toFixed(2)})${best.get(t.statement) < 0 ? "; only one of the two says not" : ""}`;
    list(near, panel, [], near.map(cosine));
  };
  const firstOf = new Map();
  triples.forEach((t, n) => { if (!firstOf.has(t.statement)) firstOf.set(t.statement, n); });

  const group = (t) => texts.group[t.group] ?? "?";

  const source = (from, parent) => {
    const item = node("li", undefined, parent);
    const prompt = from.prompt.trim().split("\n").slice(-2).join(" ⏎ ");
    node("div", `asked: … ${prompt}`, item);
    node("div", `answered: ${from.answer.trim() || "(not kept)"}`, item);
    node("small", `${from.strategy}, round ${from.iteration}, attempt ${from.attempt}, ${from.template}`, item);
  };

  // Statements that open to show where they come from; `held` has the words that each was found by.
  const list = (triples, parent, held = [], near = []) => {
    const ordered = node("ol", undefined, parent);
    triples.forEach((t, n) => {
      const more = node("details", undefined, node("li", undefined, ordered));
      const arm = arms.length ? ` [${arms[t.arm]}]` : "";
      const line = node("summary", `${group(t)} ${t.predicate} ${t.object}`, more);
      const why = near[n] ? `, ${near[n]}` : (held[n] || []).length ? `, says ${held[n].join(", ")}` : "";
      node("small", ` said ${t.count}${arm}${why}`, line);
      const sources = node("ul", undefined, more);
      if (!t.from.length) node("li", "no prompt or answer is kept for this statement", sources);
      for (const from of t.from) source(from, sources);
    });
  };

  const show = (question) => {
    const panel = by("ask-answer");
    const { groups, absent, wanted, found } = retrieve(question);
    panel.hidden = false;
    panel.replaceChildren();
    const named = [...groups].map((g) => texts.group[g]).join(" and ");
    const lacking = absent.map(([name]) => name).join(" or ");
    const them = absent.length > 1 ? "one of them" : "it";
    const others = found.length && !groups.size ? ` These statements about other groups name ${them}.` : "";
    if (lacking) node("p", `This run has no group ${lacking}.${others}`, panel);
    if (!found.length && lacking && !named) return;
    if (!found.length) {
      const what = wanted.length ? `: ${wanted.join(", ")}` : "";
      node("p", named || wanted.length
        ? `No statement ${named ? `about ${named}` : "here"} has a word of the question${what}. ` +
          "This search knows no synonyms; kgbias ask knows some."
        : "The question names no group of this run and no topic.", panel);
      const often = once(triples.filter((t) => groups.has(t.group)).map((t) => [t]))
        .map(([t]) => t).sort((a, b) => b.count - a.count);
      if (!often.length) return;
      node("p", `Said most often about ${named}, on any topic:`, panel);
      list(often.slice(0, NEAREST), panel);
      return;
    }
    const total = triples.filter((t) => !groups.size || groups.has(t.group))
      .reduce((n, t) => n + t.count, 0);
    const said = found.reduce((n, [t]) => n + t.count, 0);
    node("p", `${said} of ${total} statements${named ? ` about ${named}` : ""} match` +
      (wanted.length ? ` “${wanted.join(" ")}”.` : "."), panel);
    list(found.slice(0, SHOWN).map(([t]) => t), panel, found.map(([, , held]) => held));
    if (found.length > SHOWN) node("p", `${found.length - SHOWN} more: the table below finds them.`, panel);
    byMeaning(found, wanted, groups, panel);
  };

  by("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    show(by("ask-question").value);
  });
})();
