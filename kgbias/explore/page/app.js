// The whole page: controls write the state, and every change of state redraws what is in sight.
const histograms = {};

const announce = (text) => { by("status").textContent = text; };
// What a press of a button did, for a moment in sight.
let noticed = 0;
const notice = (text) => {
  clearTimeout(noticed);
  by("notice").hidden = false;
  by("notice").textContent = text;
  noticed = setTimeout(() => { by("notice").hidden = true; }, 3_000 + 60 * text.length);
};

// Filters

const checks = (id, names, key, tone) => {
  const box = by(id);
  box.hidden = names.length < 2;
  const every = names.map(([n]) => n);
  box.querySelector(".choices").replaceChildren(...names.map(([n, text]) => {
    const label = make("label"), input = make("input");
    input.type = "checkbox";
    input.value = n;
    input.addEventListener("change", () => {
      const on = new Set([...box.querySelectorAll("input:checked")].map((i) => Number(i.value)));
      set({ [key]: on.size === every.length ? null : on });
    });
    const swatch = make("i", null, `swatch ${tone?.(n) ?? ""}`);
    label.append(input, ...(tone ? [swatch] : []), make("span", text), make("small"));
    return label;
  }));
};
const syncChecks = (id, key, column) => {
  const box = by(id);
  if (box.hidden) return;
  const tally = new Map();
  if (column) for (const n of tableRows(state.source, [key]).rows) tally.set(column[n], (tally.get(column[n]) ?? 0) + 1);
  const most = Math.max(1, ...tally.values());
  for (const label of box.querySelectorAll("label")) {
    const input = label.querySelector("input");
    input.checked = !state[key] || state[key].has(Number(input.value));
    const often = tally.get(Number(input.value)) ?? 0;
    if (!column) continue;
    label.querySelector("small").textContent = number(often);
    label.classList.add("facet");
    label.style.setProperty("--share", `${(100 * often) / most}%`);
  }
};

const BINS = 24;
const span = (m) => {
  if (m.range) return m.range;
  const values = row.measures[m.name];
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== NO_VALUE) { low = Math.min(low, v); high = Math.max(high, v); }
  return low > high ? [0, 1] : [Math.floor((low / m.scale) * 10) / 10, Math.ceil((high / m.scale) * 10) / 10];
};
const buildMeasures = () => {
  const box = by("measures");
  for (const m of about.measures) {
    if (!row.measures[m.name].some((v) => v !== NO_VALUE)) continue;
    const [low, high] = span(m), part = make("fieldset", null, "measure"), name = m.name.replace("_", " ");
    part.append(make("legend", m.name === "acceptability" ? "Makes sense (acceptability)" : name[0].toUpperCase() + name.slice(1)));
    const bars = svg("svg", { viewBox: `0 0 ${BINS} 22`, preserveAspectRatio: "none", class: "bars", "aria-hidden": true });
    for (let n = 0; n < BINS; n++) bars.append(svg("rect", { x: n + 0.08, width: 0.84, y: 22, height: 0 }));
    const range = make("div", null, "range"), inputs = ["from", "to"].map((end) => {
      const input = make("input");
      Object.assign(input, { type: "range", min: low, max: high, step: (high - low) / 100 });
      input.setAttribute("aria-label", `${name}, ${end}`);
      input.title = m.direction;
      range.append(input);
      return input;
    });
    const told = make("output");
    const send = () => {
      const pair = inputs.map((i) => Number(Number(i.value).toFixed(4))).sort((a, b) => a - b);
      const next = { ...state.measures }, whole = pair[0] <= low && pair[1] >= high;
      if (whole && !usual()[m.name]) delete next[m.name];
      else next[m.name] = pair;
      set({ measures: next });
    };
    for (const input of inputs) input.addEventListener("input", send);
    part.append(bars, range, told);
    if (m.believed) {
      const believed = make("small", m.believed[0]);
      believed.title = m.believed[1];
      part.append(believed);
    }
    box.append(part);
    histograms[m.name] = { m, low, high, bars: [...bars.children], inputs, told };
  }
};
const syncMeasures = () => {
  const { rows } = tableRows();
  for (const { m, low, high, bars, inputs, told } of Object.values(histograms)) {
    const bins = new Uint32Array(BINS), values = row.measures[m.name], wide = (high - low) * m.scale;
    // What passes all filters, so that the bars match the pictures.
    for (const n of rows) {
      if (values[n] === NO_VALUE) continue;
      bins[Math.max(0, Math.min(BINS - 1, Math.floor(((values[n] - low * m.scale) / wide) * BINS)))] += 1;
    }
    const most = Math.max(1, ...bins), limits = bounds(m.name) ?? [low, high];
    bars.forEach((bar, n) => {
      const tall = bins[n] ? Math.max(1, 22 * Math.sqrt(bins[n] / most)) : 0;
      bar.setAttribute("y", 22 - tall);
      bar.setAttribute("height", tall);
    });
    inputs.forEach((input, n) => { if (document.activeElement !== input) input.value = limits[n]; });
    const text = (v) => v.toFixed(2).replace("-", "−");
    told.textContent = bounds(m.name) ? `${text(limits[0])} to ${text(limits[1])}` : "all";
  }
};

const CHIPS = { inGroup: "group", predicate: "predicate", object: "object", topic: "topic", community: "community", meaning: "region", words: "words" };
const drawChips = () => {
  const chips = [];
  for (const [key, name] of Object.entries(CHIPS)) {
    const value = state[key];
    if (value === BASE[key]) continue;
    if (key === "inGroup" && ["group", "two", "path"].includes(state.view)) continue;
    const text = key === "words" ? `“${value}”` : OF_OBJECTS.includes(key) ? maps?.[key]?.name[value] ?? "" : texts[name][value];
    chips.push(chip(name, text, { [key]: BASE[key] }));
  }
  if (state.lasso) chips.push(chip("lasso", "drawn on the map", { lasso: null }));
  if (state.from > 0 || state.to < BASE.to) chips.push(chip("rounds", `${state.from} to ${state.to}`, { from: 0, to: BASE.to }));
  by("chips").replaceChildren(...chips);
  const base = cleared();
  by("reset").hidden = FILTERS.every((key) => (key === "measures" ? !Object.keys(state.measures).length : state[key] === base[key]));
};
const chip = (name, text, undo) => {
  const element = make("span", null, "chip");
  const close = button("×", () => set(undo));
  close.setAttribute("aria-label", `Remove the filter ${name}`);
  element.append(make("small", name), make("span", short(text, 36), "said"), close);
  return element;
};

// Choices of groups and sources

const wire = (id, key, value = Number) => by(id).addEventListener("input", () => set({ [key]: value(by(id).value) }));

// Drawing

const CAPTIONS = {
  map: () => `${plural(selection().rows.length, "statement")} of ${number(about.sources[state.source].end - about.sources[state.source].start)} in ${sourceName(state.source)}. ${state.by === "meaning" ? byMeaning() : byUnits()}${byColour()}`,
};
const PLACING = { umap: "UMAP", pca: "two principal components (UMAP comes with kgbias[topics], and separates more)" };
const byMeaning = () => `A dot is an object, near others that are about the same by ${PLACING[about.placing]}, whether or not they agree (“lazy” lies near “not lazy”); directions and distances across the map mean nothing. Names are words found most in a region; `;
const byUnits = () => `A disc is a ${NOUN[state.by].toLowerCase()}, a dot is an object said of it; ${state.by === "community" ? "" : "objects at the rim are shared, on the side of the units they are shared with; "}`;
const byColour = () => (state.colour === "regard" ? "colour: positive minus negative." : Object.hasOwn(NAMES, state.colour) ? `colour: the ${COLOUR_NAMES[state.colour]} said most.` : `colour: the mean of ${COLOUR_NAMES[state.colour] ?? state.colour.replace("_", " ")}.`);
const NEEDS = { group: ["group"], two: ["group", "with"], path: ["group", "with"], differences: [] };
const settle = () => {  // choose what a view needs and the state lacks
  if (NEEDS[state.view]?.length && !texts.group.length) state.view = "map";
  for (const key of NEEDS[state.view] ?? []) {
    if (state[key] >= 0) continue;
    const all = sums(selection(), texts.group.length, (n) => row.group[n]).said;
    const order = [...all.keys()].sort((a, b) => all[b] - all[a]);
    state[key] = key === "with" ? order.find((g) => g !== state.group) ?? 0 : order[0] ?? 0;
  }
};
const draw = (changes = {}) => {
  settle();
  if (!maps && state.view === "map") return;  // drawn once it has been unpacked
  const onMap = state.view === "map";
  document.body.dataset.view = state.view;
  for (const tab of document.querySelectorAll("[data-tab]")) {
    if (tab.dataset.tab === state.view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  for (const [id, value] of [["by", state.by], ["source", state.source], ["other", state.other], ["group", state.group], ["with", state.with], ["limit", state.limit], ["count", state.count], ["colour", state.colour], ["table-by", state.by]]) {
    if (by(id) && document.activeElement !== by(id)) by(id).value = value;
  }
  if (document.activeElement !== by("search")) by("search").value = state.words;
  by("topic").value = state.topic;
  by("echoes").checked = !state.echoes;
  const only = Object.keys(changes);
  const quiet = only.length && only.every((key) => ["row", "page", "sort", "down", "table"].includes(key));
  if (!quiet) {
    if (onMap) {
      by("caption").textContent = CAPTIONS.map();
      if (map.renderer) {
        map.renderer.resize();
        drawMap(true);
      }
    } else by("caption").textContent = PICTURES[state.view]();
    if (state.words.trim() && !selection().rows.length) by("caption").replaceChildren(...holdsNothing(state.words));
    drawChips();
    syncMeasures();
    syncChecks("regard-filter", "regard", row.label);
    syncChecks("verdict-filter", "verdict", row.verdict);
    syncChecks("mark-filter", "mark", row.mark);
    syncChecks("strategy-filter", "strategy");
    drawFacets();
    drawTimeline();
    drawMeaning();
    const n = tableRows().rows.length;
    announce(n || !state.words.trim() ? plural(n, "statement") : by("caption").textContent);
    drawLegend();
  }
  if (!quiet || only.some((key) => key !== "row")) drawTable();
  if (only.includes("row") || !only.length) {
    if (state.row >= 0) openRow(state.row);
    else if (only.length) closePanel();
  }
  markRow();
  drawExports();
};

const start = async () => {
  ready(await block("core"));
  buildMeasures();
  Object.assign(state, read(location.hash.slice(1)));
  about.sources.forEach((_, n) => {
    by("source").append(option(sourceName(n), n));
    by("other").append(option(sourceName(n), n));
  });
  by("source-choice").hidden = about.sources.length < 2;
  document.querySelector('[data-tab="differences"]').hidden = about.sources.length < 2;
  about.maps.forEach((kind) => by("by").append(option({ group: "groups", meaning: "meaning", community: "communities", topic: "topics", predicate: "predicates" }[kind], kind)));
  fillGroups(by("group"), about.categories);
  fillGroups(by("with"), about.categories);
  by("topic").append(option("all", -1), ...texts.topic.slice(1).map((name, n) => option(short(name, 50), n + 1)));
  by("topic-choice").hidden = texts.topic.length < 2;
  const places = ["negative", "neutral", "positive", "other", ""], place = (n) => (places.indexOf(core.label[n]) + 5) % 5;
  const regards = [...core.label.keys()].filter((n) => n || row.label.includes(0)).sort((a, b) => place(a) - place(b))
    .map((n) => [n, core.label[n] || "not measured"]);
  checks("regard-filter", regards, "regard", (n) => core.label[n] || "neutral");
  for (const key of ["verdict", "mark"]) checks(`${key}-filter`, row[key] ? core[key].map((v, n) => [n, v]).filter(([n]) => row[key].includes(n)) : [], key);
  checks("strategy-filter", core.strategy.map((s, n) => [n, s]), "strategy");
  by("echo-choice").hidden = !said.echo?.some((n) => n);
  by("colour").append(...colourColumns().map((key) => option(COLOUR_NAMES[key] ?? key.replace("_", " "), key)));
  wire("colour", "colour", String);
  startFacets();
  wire("by", "by", String);
  wire("source", "source");
  wire("other", "other");
  wire("group", "group");
  wire("with", "with");
  wire("limit", "limit");
  wire("topic", "topic");
  by("by").addEventListener("input", () => set({ lasso: null }));
  by("count").addEventListener("change", () => set({ count: Math.max(1, Math.floor(Number(by("count").value)) || 1) }));
  by("echoes").addEventListener("change", () => set({ echoes: !by("echoes").checked }));
  by("reset").addEventListener("click", () => set(cleared()));
  for (const tab of document.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => set({ view: tab.dataset.tab }));
  by("tab-runs").hidden = about.sources.length < 2;
  for (const name of Object.keys(TABLES)) by(`tab-${name}`).addEventListener("click", () => set({ table: name }));
  by("previous").addEventListener("click", () => set({ page: state.page - 1 }));
  by("next").addEventListener("click", () => set({ page: state.page + 1 }));
  by("swap").addEventListener("click", () => set(state.view === "differences" ? { source: state.other, other: state.source } : { group: state.with, with: state.group }));
  by("zoom-in").addEventListener("click", () => zoomBy(1 / 1.6));
  by("zoom-out").addEventListener("click", () => zoomBy(1.6));
  by("whole").addEventListener("click", () => moveCamera({ x: 0.5, y: 0.5, ratio: 1, angle: 0 }));
  by("lasso-button").addEventListener("click", () => setLasso(!map.lasso));
  by("close-details").addEventListener("click", () => { closePanel(); set({ row: -1 }); });
  by("export").addEventListener("toggle", drawExports);
  for (const [id, action] of [["save-svg", savePicture], ["save-png", savePixels], ["save-gexf", saveGraph], ["save-csv", saveTable], ["save-jsonl", saveLines]]) by(id).addEventListener("click", action);
  by("copy-command").addEventListener("click", () => copy(by("command").textContent, "The command"));
  by("copy-cypher").addEventListener("click", () => copy(by("cypher").textContent, "The query"));
  by("copy-link").hidden = location.protocol === "about:";  // in a notebook's frame
  by("copy-link").addEventListener("click", copyLink);
  const blur = (on) => {
    document.body.classList.toggle("blurred", on);
    by("blur").setAttribute("aria-pressed", on);
  };
  by("blur").addEventListener("click", () => blur(!document.body.classList.contains("blurred")));
  const warned = () => document.body.classList.remove("unwarned");
  by("warning").addEventListener("close", warned); // by Escape; the event comes a moment after a button's close()
  for (const [id, on] of [["show", false], ["keep-blurred", true]]) by(id).addEventListener("click", () => { blur(on); by("warning").close(); warned(); });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !by("details").hidden && !by("warning").open) set({ row: -1 });
  });
  addEventListener("hashchange", () => { Object.assign(state, read(location.hash.slice(1))); current = null; draw(); });
  addEventListener("popstate", () => { Object.assign(state, read(location.hash.slice(1))); current = null; draw(); });
  onWidth(by("stage"), () => draw({ resized: true }));
  dark.addEventListener("change", () => { palette = undefined; draw({ dark: true }); });
  startSearch();
  startTimeline();
  onChange(draw);
  readyMaps(await block("maps"));
  startMap();
  draw();
  startLive();
  document.documentElement.dataset.ready = Math.round(performance.now());
  window.kgbias = { about, state, set, cleared, map, selection, passing, complete, block, maps: () => maps, named: () => named, text: (kind, n) => texts[kind][n] };  // for scripts that drive the page, such as the tests
};
const warnedOf = warnedBefore();
if (warnedOf) {
  document.body.classList.toggle("blurred", warnedOf === "blurred");
  by("blur").setAttribute("aria-pressed", warnedOf === "blurred");
  document.body.classList.remove("unwarned");
} else by("warning").showModal();
start().catch((problem) => {
  if (problem.stale) return location.reload();
  by("found").textContent = `This page cannot be shown here: ${problem.message}. It needs a browser of 2023 or later.`;
});
