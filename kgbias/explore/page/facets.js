// Facets: under all other filters, how many statements of the view each group or predicate has, as bars to choose by.
const FACETS = { inGroup: "group", predicate: "predicate" };
const FEW = 8, MANY = 200;  // bars at first, and at most
const wholeFacets = new Set();

const drawFacet = (key) => {
  const kind = FACETS[key], box = by(`${kind}-facet`), bars = box.querySelector(".bars-of"), tally = new Uint32Array(texts[kind].length);
  box.hidden = texts[kind].length < 2;
  if (box.hidden) return;
  for (const n of tableRows(state.source, [key]).rows) tally[row[kind][n]] += 1;
  const order = [...tally.keys()].filter((v) => tally[v] || v === state[key]).sort((a, b) => tally[b] - tally[a] || a - b);
  const shown = order.slice(0, wholeFacets.has(key) ? MANY : FEW), most = Math.max(1, tally[order[0]] ?? 1);
  if (state[key] >= 0 && !shown.includes(state[key])) shown.push(state[key]);
  const focused = bars.contains(document.activeElement) ? document.activeElement.dataset.value : null;
  const own = state.colour === kind && state.view !== "differences" ? namesOf(kind).place : null;
  bars.replaceChildren(...shown.map((v) => {
    const bar = button("", () => set({ [key]: state[key] === v ? -1 : v }), "facet");
    bar.dataset.value = v;
    bar.setAttribute("aria-pressed", state[key] === v);
    bar.style.setProperty("--share", `${(100 * tally[v]) / most}%`);
    if (own) bar.style.setProperty("--tone", nameColour(own[v]));
    bar.append(make("span", texts[kind][v], "said"), make("small", number(tally[v])));
    return bar;
  }));
  if (focused !== null) bars.querySelector(`[data-value="${focused}"]`)?.focus({ preventScroll: true });
  const more = box.querySelector(".more"), hidden = order.length - FEW;
  more.hidden = hidden <= 0;
  more.textContent = wholeFacets.has(key) ? "Fewer" : `${number(hidden)} more`;
};
const drawFacets = () => Object.keys(FACETS).forEach(drawFacet);
const startFacets = () => {
  for (const [key, kind] of Object.entries(FACETS)) {
    by(`${kind}-facet`).querySelector(".more").addEventListener("click", () => {
      if (!wholeFacets.delete(key)) wholeFacets.add(key);
      drawFacet(key);
    });
  }
};
