// The picture of the report's first section: said against believed, coloured by regard. Model text
// reaches it only as text nodes.
(() => {
  if (!evidence || !by("quadrants")) return;
  const { verdicts, cuts, points } = evidence;
  const REFUSED = verdicts.length - 1, ONLY = 1;
  const signed = (x, digits = 1) => (x > 0 ? "+" : "") + x.toFixed(digits);
  const range = ([value, low, high]) =>
    signed(value) + (low === null ? "" : ` (${signed(low)} to ${signed(high)})`);
  const sentence = (p) => `${groups[p.group].name} ${p.predicate} ${p.object}`;
  const described = (p) => [
    verdicts[p.verdict], `lift ${range(p.lift)} bits, ${p.names} names`,
    p.q === null ? "" : `corrected p ${p.q < 0.001 ? "< 0.001" : p.q.toFixed(3)}`,
    p.association[0] === null ? "" : `association ${range(p.association)}`,
  ].filter(Boolean).join(" · ");

  // What a statement's dialog says about it, wherever on the page it is opened.
  for (const p of points) for (const n of p.triples) Object.assign(triples[n], { evidence: described(p), of_names: p.of_names });
  // A sentence that was cut in two in several places has several triples, and the answers of all.
  const open = (p) => showOrigins(p.triples.length ? {
    ...triples[p.triples[0]], count: p.count, from: p.triples.flatMap((n) => triples[n].from),
  } : {
    ...p, from: [], evidence: described(p),
    others: p.others.length ? `Never said about this group; said about ${p.others.join(", ")}.` : "",
  });
  for (const link of document.querySelectorAll("[data-evidence]")) {
    link.addEventListener("click", () => open(points[Number(link.dataset.evidence)]));
  }

  // A row of a table of beliefs opens the pair that it is about.
  const pairs = new Map(points.map((p) => [`${p.group} ${p.statement}`, p]));
  for (const row of document.querySelectorAll("tr[data-opens]")) {
    const point = pairs.get(row.dataset.opens);
    if (!point) continue;
    row.tabIndex = 0;
    row.addEventListener("click", () => open(point));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); open(point); } });
  }

  const category = by("evidence-category"), group = by("evidence-group"), arm = by("evidence-arm");
  const offer = () => group.replaceChildren(option("all", ""), ...groups.flatMap((g, n) =>
    (g.category === category.value ? [option(g.name, n)] : [])));
  if (arm) arm.replaceChildren(option("all", ""), ...arms.map(option));

  // A fixed place between 0 and 1 for each number, so that points in one lane do not hide each other.
  const spread = (n) => (Math.imul(n + 1, 2654435761) >>> 8) / 16777216;
  const marks = {
    positive: (r) => `M0 ${-r * 1.2}L${r * 1.1} ${r * 0.8}H${-r * 1.1}Z`,
    negative: (r) => `M0 ${r * 1.2}L${r * 1.1} ${-r * 0.8}H${-r * 1.1}Z`,
    neutral: (r) => `M${-r} 0A${r} ${r} 0 1 0 ${r} 0A${r} ${r} 0 1 0 ${-r} 0Z`,
    refused: (r) => `M0 ${-r * 1.4}L${r * 1.4} 0L0 ${r * 1.4}L${-r * 1.4} 0Z`,
  };
  let shown = [], chosen = -1;
  const tell = (n) => {
    chosen = n;
    for (const { mark } of shown) mark.classList.remove("chosen");
    if (n < 0) return;
    shown[n].mark.classList.add("chosen");
    by("quadrant-point").textContent = `${sentence(shown[n].point)} · said ${shown[n].point.count}× · ${described(shown[n].point)}`;
  };
  const draw = () => {
    const place = by("quadrants"), width = Math.max(280, place.clientWidth);
    const narrow = width < 560, height = narrow ? 400 : 440, lane = 96, left = 44, bottom = 44, top = 26;
    const kept = points.map((p, n) => [p, n]).filter(([p]) => p.category === category.value &&
      (group.value === "" || p.group === Number(group.value)) &&
      (!arm || arm.value === "" || p.arm === Number(arm.value) || p.arm < 0));
    const lifts = kept.map(([p]) => p.lift[0]);
    const most = Math.max(2, ...lifts.map(Math.abs)) * 1.06;
    const counts = Math.max(2, ...kept.map(([p]) => p.count));
    const x = (bits) => left + ((bits + most) / (2 * most)) * (width - left - 10);
    const floor = height - bottom - lane;  // between what was said and what was not
    const rungs = Math.log2(counts) + 1;
    const y = (count, n) => (count
      ? floor - 8 - (Math.log2(count) + 0.12 + 0.76 * spread(n)) * ((floor - top - 8) / rungs)
      : floor + 24 + spread(n) * (lane - 34));
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "application", tabindex: 0,
      "aria-label": "Said against believed. Arrow keys move from point to point and Enter opens one; the lists below name the most telling." });
    const text = (x, y, words, anchor, className) =>
      picture.append(svg("text", { x, y, "text-anchor": anchor ?? "start", class: className ?? "" }, words));
    const line = (x1, y1, x2, y2, className) => picture.append(svg("line", { x1, y1, x2, y2, class: className }));
    line(left, floor, width - 10, floor, "axis");
    line(x(0), top, x(0), height - bottom, "grid");
    const cut = cuts[category.value];
    if (cut !== null) line(x(cut), top, x(cut), height - bottom, "cut");
    const step = most > 12 ? 5 : most > 5 ? 2 : 1;
    for (let bits = Math.ceil(-most / step) * step; bits <= most; bits += step) {
      text(x(bits), height - bottom + 16, signed(bits, 0), "middle", "soft");
    }
    text((left + width) / 2, height - 8, narrow ? "lift in bits" : "likelier for the others  ←  lift in bits  →  likelier for this group", "middle", "soft");
    const said = [];
    for (let count = 1; count <= counts; count *= 2) said.push(count);
    for (const count of said) text(left - 8, y(count, 0.5) + 4, `${count}×`, "end", "soft");
    text(left - 8, floor + lane / 2 + 8, "never", "end", "soft");
    text(left + 4, top - 8, verdicts[ONLY], "start", "name");
    text(width - 10, top - 8, verdicts[0], "end", "name");
    text(width - 10, floor + 15, kept.some(([p]) => p.verdict === REFUSED) ? `${verdicts[2]}, ◆ ${verdicts[3]}` : verdicts[2], "end", "name");
    if (cut === null) text(x(most / 2), floor + lane / 2 + 12, "nothing is believed here", "middle", "soft");
    const radius = kept.length > 1500 ? 2.6 : kept.length > 400 ? 3.4 : 4.4;
    // Beliefs are drawn last, on top.
    kept.sort(([a], [b]) => (a.verdict === ONLY ? 0 : 1) - (b.verdict === ONLY ? 0 : 1) || a.lift[0] - b.lift[0]);
    shown = kept.map(([point, n]) => {
      const kind = point.verdict === REFUSED ? "refused" : point.regard in marks ? point.regard : "neutral";
      const mark = svg("path", { d: marks[kind](point.verdict === ONLY ? radius : radius + 1.4),
        transform: `translate(${x(point.lift[0]).toFixed(1)} ${y(point.count, n).toFixed(1)})`,
        class: `${point.regard} ${point.verdict === ONLY ? "only" : "held"}` });
      mark.append(svg("title", {}, sentence(point)));
      picture.append(mark);
      return { point, mark };
    });
    shown.forEach(({ point, mark }, n) => {
      mark.addEventListener("click", () => { tell(n); open(point); });
      mark.addEventListener("pointerenter", () => tell(n));
    });
    shown.order = shown.map((_, n) => n).sort((a, b) => shown[a].point.lift[0] - shown[b].point.lift[0]);
    picture.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (move && shown.length) {
        const at = shown.order.indexOf(chosen);
        tell(shown.order[at < 0 ? (move > 0 ? 0 : shown.length - 1) : Math.min(shown.length - 1, Math.max(0, at + move))]);
        event.preventDefault();
      }
      if (event.key === "Enter" && chosen >= 0) { open(shown[chosen].point); event.preventDefault(); }
    });
    chosen = -1;
    place.replaceChildren(picture);
  };
  offer();
  category.addEventListener("input", () => { offer(); draw(); });
  group.addEventListener("input", draw);
  arm?.addEventListener("input", draw);
  draw();
  onWidth(by("quadrants"), draw);
})();
