// Exports of the selection: pictures, rows, and the query or command that gives the same subgraph.
const fileName = (end) => `${about.sources[state.source].run.replace(/[^\w.-]+/g, "-").slice(0, 60) || "run"}-${state.view}.${end}`;

// The picture on the screen as one SVG, with its caption and colours.
const pictureFile = () => {
  const drawn = state.view === "map" ? mapPicture() : by("picture").querySelector("svg")?.cloneNode(true);
  if (!drawn) return null;
  const { page, soft } = colours(), [, , width, height] = drawn.getAttribute("viewBox").split(" ").map(Number);
  const whole = svg("svg", { xmlns: SVG, viewBox: `0 0 ${width} ${height + 63}`, width, height: height + 63, "font-family": FONT.replaceAll('"', "'") });
  whole.append(svg("rect", { width: "100%", height: "100%", fill: page }), ...drawn.childNodes);
  const legend = svg("text", { x: 12, y: height + 18, "font-size": 11, fill: soft });
  for (const [tone, words] of legendOf()) legend.append(svg("tspan", { fill: tone }, "● "), svg("tspan", {}, `${plain(words)}   `));
  whole.append(legend);
  const lines = [by("caption").textContent, `${sourceName(state.source)}, ${about.sources[state.source].model}. ${by("warning-words").textContent}`];
  lines.forEach((text, n) => whole.append(svg("text", { x: 12, y: height + 35 + 17 * n, "font-size": 11, fill: soft }, plain(text))));
  for (const element of whole.querySelectorAll("[tabindex]")) for (const name of ["tabindex", "role", "aria-label"]) element.removeAttribute(name);
  for (const text of whole.querySelectorAll("title, text, tspan")) if (!text.children.length) text.textContent = plain(text.textContent);
  return { text: new XMLSerializer().serializeToString(whole), width, height: height + 63 };
};
const savePicture = () => {
  const file = pictureFile();
  if (file) save(fileName("svg"), "image/svg+xml", ['<?xml version="1.0" encoding="UTF-8"?>\n', file.text]);
};
const savePixels = async () => {
  const file = pictureFile();
  if (!file) return;
  const image = new Image(), scale = Math.max(1, Math.min(3, 4000 / file.width));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(file.text)}`;
  try {
    await image.decode();
  } catch {
    return notice("This browser could not turn the picture into pixels: save it as SVG.");
  }
  const canvas = make("canvas");
  canvas.width = file.width * scale;
  canvas.height = file.height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => (blob ? save(fileName("png"), "image/png", [blob]) : notice("The picture is too large for this browser: save it as SVG.")), "image/png");
};

const record = (n, count) => ({
  run: runOf(n), arm: about.sources[sourceOf(n)].arm, group: texts.group[row.group[n]], predicate: texts.predicate[row.predicate[n]],
  object: texts.object[row.object[n]], count, ...Object.fromEntries(about.measures.map((m) => [m.name, valueOf(m.name, n)])),
  regard_label: core.label[row.label[n]] || null, topic: texts.topic[row.topic[n]] || null,
  ...(row.verdict ? { verdict: core.verdict[row.verdict[n]] } : {}),
  ...(row.mark ? { recorded: row.mark[n] ? core.mark[row.mark[n]] : null, recorded_nearest: core.recorded[core["row.recorded"][n]] || null } : {}),
});
function* records() {
  const both = state.view === "differences" ? [state.source, state.other] : [state.source];
  for (const source of new Set(tableOpen() === "runs" ? about.sources.keys() : both)) {
    const { rows, counts } = tableRows(source);
    for (let k = 0; k < rows.length; k++) yield record(rows[k], counts[k]);
  }
}
// Lines as parts of a file, a few thousand in each: a million rows are never one string.
const parted = (lines) => {
  const parts = [];
  let part = [];
  for (const line of lines) {
    part.push(line);
    if (part.length === 5000) { parts.push(new Blob(part)); part = []; }
  }
  return [...parts, ...part];
};
// A cell that a spreadsheet shows as text: what it would read as a formula gets an apostrophe in front.
const cell = (value) => {
  if (typeof value === "string" && /^[=+\-@\t\r\n]/.test(value)) value = `'${value}`;
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const cells = (values) => `${values.map(cell).join(",")}\r\n`;
function* table() {
  let names = null;
  for (const entry of records()) {
    if (!names) yield cells(names = Object.keys(entry));
    yield cells(Object.values(entry));
  }
  if (!names) yield cells(["group"]);
}
function* jsonLines() { for (const entry of records()) yield `${JSON.stringify(entry)}\n`; }

// The rows as GEXF 1.3. Gephi merges edges between the same nodes unless their kinds differ.
const xml = (text) => plain(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
function* gexf() {
  const nodes = new Map(), columns = ["run", "arm", "count", ...about.measures.map((m) => m.name)];
  const nodeOf = (kind, label) => {
    const key = `${kind} ${label}`;
    if (!nodes.has(key)) nodes.set(key, { id: nodes.size, kind, label });
    return nodes.get(key).id;
  };
  for (const { group, object } of records()) { nodeOf("group", group); nodeOf("object", object); }
  const type = (name) => (name === "run" || name === "arm" ? "string" : name === "count" ? "long" : "double");
  const attribute = (name, kind) => `<attribute id="${xml(name)}" title="${xml(name)}" type="${kind}"/>`;
  yield `<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://gexf.net/1.3" version="1.3">\n<meta><creator>kgbias</creator><description>${xml(by("warning-words").textContent)}</description></meta>\n<graph defaultedgetype="directed">\n`;
  yield `<attributes class="node">${attribute("kind", "string")}</attributes>\n<attributes class="edge">${columns.map((name) => attribute(name, type(name))).join("")}</attributes>\n<nodes>\n`;
  for (const { id, kind, label } of nodes.values()) yield `<node id="${id}" label="${xml(label)}"><attvalues><attvalue for="kind" value="${kind}"/></attvalues></node>\n`;
  yield "</nodes>\n<edges>\n";
  let id = 0;
  for (const entry of records()) {
    const kind = about.sources.length > 1 ? `${entry.predicate} ${entry.run} ${entry.arm}` : entry.predicate;
    const values = columns.filter((name) => entry[name] !== null && entry[name] !== undefined && !Number.isNaN(entry[name]));
    yield `<edge id="${id++}" source="${nodeOf("group", entry.group)}" target="${nodeOf("object", entry.object)}" kind="${xml(kind)}" label="${xml(entry.predicate)}" weight="${entry.count}"><attvalues>${values.map((name) => `<attvalue for="${xml(name)}" value="${xml(String(entry[name]))}"/>`).join("")}</attvalues></edge>\n`;
  }
  yield "</edges>\n</graph>\n</gexf>\n";
}
const saveGraph = () => save(fileName("gexf"), "application/xml", parted(gexf()));
const saveTable = () => save(fileName("csv"), "text/csv", parted(table()));
const saveLines = () => save(fileName("jsonl"), "application/jsonl", parted(jsonLines()));

// A Cypher string, with quotes, backslashes and line ends escaped.
const quoted = (text) => `'${text.replace(/[\\']/g, "\\$&").replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0").slice(-4)}`)}'`;
const INLINE = 2000;  // ids in a query
const tripleId = (bytes, n) => Array.from(bytes.subarray(10 * n, 10 * n + 10), (b) => b.toString(16).padStart(2, "0")).join("");

// The query that gives the same edges in Neo4j. What the graph's STEREOTYPE edges carry becomes a
// condition; otherwise the statements are listed by id.
const cypher = async () => {
  const { run, arm } = about.sources[state.source], tests = [`s.run = ${quoted(run)}`, `s.arm = ${quoted(arm)}`];
  const groups = state.view === "group" ? [state.group] : state.view === "two" || state.view === "path" ? [state.group, state.with] : state.inGroup >= 0 ? [state.inGroup] : [];
  const plainFilters = state.view !== "path" && state.topic < 0 && state.community < 0 && state.meaning < 0 && !state.words && !state.verdict && !state.mark && !state.strategy && !state.lasso
    && !state.regard && state.from === 0 && state.to === BASE.to && state.echoes && about.measures.every((m) => !state.measures[m.name] || ["regard", "toxicity", "acceptability"].includes(m.name));
  const { rows } = state.view === "path" ? selection() : tableRows();
  if (plainFilters || rows.length > INLINE) {
    if (groups.length) tests.push(`g.name IN [${groups.map((g) => quoted(texts.group[g])).join(", ")}]`);
    if (state.predicate >= 0) tests.push(`s.predicate = ${quoted(texts.predicate[state.predicate])}`);
    if (state.object >= 0) tests.push(`o.text = ${quoted(texts.object[state.object])}`);
    if (state.count > 1) tests.push(`s.count >= ${state.count}`);
    for (const name of ["regard", "toxicity", "acceptability"]) {
      const limits = bounds(name);
      if (!limits) continue;
      const inner = `${limits[0]} <= s.${name} <= ${limits[1]}`;
      tests.push(name === "acceptability" ? `(s.${name} IS NULL OR ${inner})` : inner);
    }
  } else {
    const ids = (await block("ids")).triple;
    tests.push(`s.triple IN [${Array.from(rows, (n) => `'${tripleId(ids, n)}'`).join(", ")}]`);
  }
  const note = plainFilters || rows.length <= INLINE ? "" : `// Filters that the edges do not carry are left out: there are too many statements to list.\n`;
  return `${note}MATCH (g:SocialGroup)-[s:STEREOTYPE]->(o:Object)\nWHERE ${tests.join("\n  AND ")}\nRETURN g, s, o`;
};
// A word for a shell.
const shell = (text) => (/^[\w./~:-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const command = () => {
  const { run, arm } = about.sources[state.source], parts = ["kgbias export", shell(run)];
  if (about.sources.filter((s) => s.run === run).length > 1) parts.push("--arm", shell(arm));
  const groups = state.view === "group" ? [state.group] : ["two", "path"].includes(state.view) ? [state.group, state.with] : state.inGroup >= 0 ? [state.inGroup] : [];
  for (const g of groups) parts.push("--only", shell(texts.group[g]));
  if (state.predicate >= 0) parts.push("--predicate", shell(texts.predicate[state.predicate]));
  if (state.topic > 0) parts.push("--topic", shell(texts.topic[state.topic]));
  if (state.count > 1) parts.push("--min-count", state.count);
  const sense = bounds("acceptability");
  if (state.measures.acceptability && sense) parts.push("--set", `min-acceptability=${sense[0]}`);
  if (!state.echoes) parts.push("--set", "exclude-echoes=true");
  parts.push("-o", "selection.graphml");
  const missing = [
    ["regard", state.regard], ["verdict", state.verdict], ["known or new", state.mark], ["strategy", state.strategy], ["rounds", state.from > 0 || state.to < BASE.to],
    ["words", state.words], ["community", state.community >= 0], ["region", state.meaning >= 0], ["object", state.object >= 0], ["lasso", state.lasso],
    ...about.measures.map((m) => [m.name, state.measures[m.name] && m.name !== "acceptability"]),
  ].filter(([, on]) => on).map(([name]) => name);
  return { text: parts.join(" "), missing };
};
const drawExports = async () => {
  if (!by("export").open) return;
  const { text, missing } = command();
  by("command").textContent = text;
  by("command-note").textContent = missing.length ? `It has no option for ${missing.join(", ")}; the Cypher, CSV and JSONL apply all filters.` : "";
  by("cypher").textContent = await cypher();
};
const copy = async (text, what, more = "") => {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${what} was copied.${more}`);
  } catch {
    const area = make("textarea", text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    notice(done ? `${what} was copied.${more}` : `${what} could not be copied: the browser does not allow it.`);
  }
};
// A link to a file leads nowhere on another computer.
const copyLink = () => {
  const file = decodeURIComponent(location.pathname.split("/").pop());
  copy(location.href, "The link", location.protocol === "file:" ? ` It names a file on this computer: for others, send ${file} along. They see the same if they add what follows .html in the link to the address of their copy.` : "");
};
