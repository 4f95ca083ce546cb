// A statement is a number. What is known of it is in columns: `row` has the places of its group, predicate
// and object in the dictionaries `texts`, its values of `measures` as whole numbers, and the sign of its
// regard. A page fills these, and provides `labelOf`, `openRows`, `openGroup`, and a `state` that `set`
// changes.
const NO_VALUE = -32768;
const KINDS = ["group", "predicate", "object"];
let texts, row, measures;  // set by the page

const textOf = (kind, n) => texts[kind][row[kind][n]];
const sentence = (n) => KINDS.map((kind) => textOf(kind, n)).filter(Boolean).join(" ");
const measureOf = (name) => measures.find((m) => m.name === name);
const valueOf = (name, n) => {
  const value = row.measures[name]?.[n];
  return value === undefined || value === NO_VALUE ? null : value / measureOf(name).scale;
};
const shownNumber = ({ signed, digits }, value) => {
  if (value === null) return "–";
  const size = Math.abs(value).toFixed(digits), sign = value < 0 && Number(size) ? "−" : signed && value ? "+" : "";
  return sign + size;
};
const shownValue = (name, n) => shownNumber(measureOf(name), valueOf(name, n));
const SIGNS = { positive: 1, negative: -1 };
const signColour = (n) => colours()[row.sign[n] > 0 ? "positive" : row.sign[n] < 0 ? "negative" : "neutral"];
let rowColour = signColour;  // of a statement's line in a picture; a page may set another
const bySaid = (a, b) => b.count - a.count || Math.abs(valueOf("regard", b.n) ?? 0) - Math.abs(valueOf("regard", a.n) ?? 0) || a.n - b.n;

// The groups before a statement, likeliest first, with the bits of each of its tokens; `own` is the
// statement's group.
const FULL = 16;  // bits at which a token's mark is strongest
const probeTable = (rows, own) => {
  const table = make("table", null, "probes"), body = make("tbody"), scroll = make("div", null, "scroll");
  for (const { group, rank, bits, pieces, surprisal } of rows) {
    const line = make("tr", null, group === own ? "own" : ""), head = make("th", texts.group[group], "said"), tokens = make("td", null, "pieces");
    head.scope = "row";
    if (!pieces.length) tokens.textContent = `${bits.toFixed(1)} bits`;
    pieces.forEach((piece, t) => {
      const token = make("ruby", piece, "said");
      token.style.setProperty("--weight", `${Math.round(70 * Math.min(1, surprisal[t] / FULL))}%`);
      token.append(make("rt", surprisal[t].toFixed(1)));
      tokens.append(make("wbr"), token);  // lines may break between tokens
    });
    line.append(make("td", rank, "number"), head, tokens);
    body.append(line);
  }
  table.append(body);
  scroll.append(table);
  return scroll;
};
