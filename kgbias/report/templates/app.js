"use strict";
// The report's behaviour: the table of statements, their provenance, and the graph of a group.
// Model text reaches the page only through textContent or as a label on a canvas.
(() => {
  const { measures, groups, arms, triples, probes, evidence } = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const nameOf = (triple) => (triple.group < 0 ? "" : groups[triple.group].name);
  const sentence = (t) => `${nameOf(t)} ${t.predicate} ${t.object}`;
  // A measure's value as text; each is {name, signed, digits}.
  const text = (measure, x) =>
    (x === null ? "–" : (measure.signed && x > 0 ? "+" : "") + x.toFixed(measure.digits));
  const regardOf = (t) => text(measures.find((m) => m.name === "regard"), t.regard);
  const option = (text, value) => {
    const element = make("option", text);
    element.value = value;
    return element;
  };
  const options = (select, first) => {
    if (first !== undefined) select.append(option(first, ""));
    const parts = new Map();
    groups.forEach((group, n) => {
      if (!parts.has(group.category)) {
        const part = make("optgroup");
        part.label = group.category;
        parts.set(group.category, part);
        select.append(part);
      }
      parts.get(group.category).append(option(group.name, n));
    });
  };

  // Of a run of several arms, what an arm said is a row of its own.
  const chooseArm = (id, first) => {
    if (!arms.length) return;
    if (first !== undefined) by(id).append(option(first, ""));
    arms.forEach((arm, n) => by(id).append(option(arm, n)));
  };
  const inArm = (id) => {
    const wanted = arms.length ? by(id).value : "";
    return (t) => wanted === "" || t.arm === Number(wanted);
  };

  // ---- probes ----
  const FULL = 16;  // bits at which a token's mark is at its strongest
  const tokens = (pieces, bits) => {
    const line = make("td", undefined, "pieces");
    pieces.forEach((piece, n) => {
      const token = make("ruby", piece);
      token.style.setProperty("--weight", `${Math.round(70 * Math.min(1, bits[n] / FULL))}%`);
      token.append(make("rt", bits[n].toFixed(1)));
      line.append(make("wbr"), token);  // lines may break between tokens
    });
    return line;
  };
  const showProbes = (triple, place) => {
    for (const { model, statements } of probes) {
      const rows = statements[triple.statement];
      if (!rows) continue;
      const own = rows.find(([group]) => group === triple.group);
      const told = make("details");
      told.open = true;
      told.append(
        make("summary", `Before this statement, ${model} ranks ` +
          `${own ? nameOf(triple) : groups[rows[0][0]].name} ${own ? own[1] : 1} of ${rows.length}`),
        make("p", "Above each token, its surprisal in bits: one more bit is half as probable.", "neutral"));
      const table = make("table", undefined, "probes");
      for (const [group, rank, pieces, bits] of rows) {
        const row = make("tr", undefined, group === triple.group ? "own" : undefined);
        row.append(make("td", rank), make("th", groups[group].name), tokens(pieces, bits));
        table.append(row);
      }
      const scroll = make("div", undefined, "scroll");
      scroll.append(table);
      told.append(scroll);
      place.append(told);
    }
  };

  // ---- names ----
  const showNames = (names, place) => {
    if (!names?.length) return;
    const bits = (x) => (x > 0 ? "+" : "") + x.toFixed(1);
    const told = make("details"), table = make("table", undefined, "numbers names"), head = make("tr"), body = make("tbody");
    told.open = true;
    told.append(make("summary", "The group's names, in bits"),
      make("p", "By how much the statement is likelier after each name than after those of the other groups, and the same after each of the " +
        "carriers that stand before the name. The group's lift is their mean, less what a form of names does to every group. Last: log2 of the " +
        "statement's probability, the mean over carriers.", "neutral"));
    head.append(make("th", "Name"), make("th", "lift"),
      ...evidence.carriers.map((carrier) => make("th", carrier ? `after “${carrier.trim()}”` : "after nothing")), make("th", "log2 p"));
    for (const [name, lift, after, mean] of [...names].sort((a, b) => b[1] - a[1])) {
      const row = make("tr");
      row.append(make("th", name), make("td", bits(lift)), ...after.map((x) => make("td", bits(x))), make("td", mean.toFixed(1)));
      body.append(row);
    }
    const first = make("thead"), scroll = make("div", undefined, "scroll");
    first.append(head);
    table.append(first, body);
    scroll.append(table);
    told.append(scroll);
    place.append(told);
  };

  // ---- provenance ----
  const dialog = by("provenance");
  const showOrigins = (triple) => {
    by("provenance-title").textContent = sentence(triple);
    const place = by("origins");
    place.replaceChildren();
    place.append(make("p", [`Said ${triple.count} times`, ...(triple.count ? measures : []).map((m) =>
      `${m.name} ${text(m, triple[m.name])}${m.name === "regard" ? ` ${triple.label}` : ""}`)].join(" · ")));
    for (const line of [triple.evidence, triple.others]) if (line) place.append(make("p", line));
    showNames(triple.of_names, place);
    showProbes(triple, place);
    for (const origin of triple.from) {
      place.append(make("p", `${origin.strategy}, iteration ${origin.iteration}, attempt ` +
        `${origin.attempt}, arm ${origin.arm}, template ${origin.template}`, "neutral"));
      place.append(make("b", "Asked"), make("pre", origin.prompt));
      place.append(make("b", "Answered"), make("pre", origin.answer));
      if (origin.shown.length) place.append(make("b", "Examples shown"), make("pre", origin.shown.join("\n")));
    }
    if (triple.count > triple.from.length) {
      place.append(make("p", `${triple.from.length} of ${triple.count} answers are shown.`, "neutral"));
    }
    dialog.showModal();
  };

  // ---- the table ----
  const PAGE = 50;
  const state = { sort: "count", down: true, page: 0, rows: triples };
  const words = triples.map((t) => sentence(t).toLowerCase());
  const body = document.querySelector("#table tbody");
  const value = (t, key) => (key === "group" ? nameOf(t) : t[key]);
  const find = () => {
    const wanted = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const group = by("filter-group").value;
    const label = by("filter-label").value;
    const chosen = inArm("filter-arm");
    state.rows = triples.filter((t, n) => chosen(t) &&
      (group === "" || t.group === Number(group)) && (label === "" || t.label === label) &&
      wanted.every((word) => words[n].includes(word)));
    const turn = state.down ? -1 : 1;
    state.rows.sort((a, b) => {
      const x = value(a, state.sort), y = value(b, state.sort);
      if (x === y) return 0;
      if (x === null) return 1;
      if (y === null) return -1;
      return turn * (typeof x === "string" ? x.localeCompare(y) : x - y);
    });
    state.page = 0;
    by("clear").hidden = state.rows.length === triples.length;
    draw();
  };
  const draw = () => {
    const start = state.page * PAGE;
    body.replaceChildren(...state.rows.slice(start, start + PAGE).map((t) => {
      const row = make("tr");
      row.tabIndex = 0;
      row.append(make("td", nameOf(t)), make("td", t.predicate), make("td", t.object), make("td", t.count),
        ...(arms.length ? [make("td", arms[t.arm])] : []),
        ...measures.map((m) => make("td", text(m, t[m.name]), m.name === "regard" ? t.label : undefined)));
      row.addEventListener("click", () => showOrigins(t));
      row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();  // or the same key press would close the dialog
        showOrigins(t);
      });
      return row;
    }));
    const pages = Math.max(1, Math.ceil(state.rows.length / PAGE));
    by("page").textContent = `page ${state.page + 1} of ${pages}`;
    by("previous").disabled = state.page === 0;
    by("next").disabled = state.page + 1 >= pages;
    by("found").textContent = `${state.rows.length} of ${triples.length}`;
    for (const head of document.querySelectorAll("#table thead th")) {
      head.removeAttribute("aria-sort");
      if (head.dataset.sort === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    }
  };
  const FILTERS = ["search", "filter-group", "filter-arm", "filter-label"];
  options(by("filter-group"), "all");
  chooseArm("filter-arm", "all");
  for (const id of FILTERS) by(id)?.addEventListener("input", find);
  for (const head of document.querySelectorAll("#table thead th")) {
    head.addEventListener("click", () => {
      const key = head.dataset.sort;
      state.down = state.sort === key ? !state.down : key === "count" || measures.some((m) => m.name === key);
      state.sort = key;
      find();
    });
  }
  // A link to statements: "#statements?group=Women&label=negative". An address is anyone's text:
  // what it names and is not here is left out.
  const follow = () => {
    const [where, query] = location.hash.split("?");
    if (where !== "#statements" || query === undefined) return;
    const wanted = new URLSearchParams(query), place = (list, name) => (list.includes(name) ? list.indexOf(name) : "");
    by("search").value = wanted.get("words") ?? "";
    by("filter-group").value = place(groups.map((g) => g.name), wanted.get("group"));
    if (arms.length) by("filter-arm").value = place(arms, wanted.get("arm"));
    by("filter-label").value = [...by("filter-label").options].some((o) => o.value === wanted.get("label")) ? wanted.get("label") : "";
    find();
    by("statements").scrollIntoView();
  };
  addEventListener("hashchange", follow);
  by("clear").addEventListener("click", () => {
    for (const id of FILTERS) if (by(id)) by(id).value = "";
    find();
  });
  by("previous").addEventListener("click", () => { state.page -= 1; draw(); });
  by("next").addEventListener("click", () => { state.page += 1; draw(); });
  find();
  follow();

  // ---- the graph ----
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const short = (text, limit) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);
  const plain = (text) => text.replace(/[\p{Cc}\p{Cf}]/gu, " ");
  const said = (group) => triples.filter((t) => t.group === group && inArm("graph-arm")(t));
  const strongest = (group, limit) => said(group)
    .sort((a, b) => b.count - a.count || Math.abs(b.regard ?? 0) - Math.abs(a.regard ?? 0))
    .slice(0, limit);
  const pen = make("canvas").getContext("2d");
  const widthOf = (text, font) => {
    pen.font = font;
    return Math.ceil(pen.measureText(text).width) + 18;
  };
  const GROUP_FONT = "bold 19px Helvetica, Arial, sans-serif", OBJECT_FONT = "15px Helvetica, Arial, sans-serif";
  let view = null;
  const picture = () => {
    const first = Number(by("graph-group").value);
    const second = by("graph-other").value === "" ? null : Number(by("graph-other").value);
    const limit = Number(by("graph-limit").value);
    by("graph-count").textContent = limit;
    const chosen = second === null || second === first ? [first] : [first, second];
    const key = (t) => t.object.toLowerCase();
    let kept = strongest(chosen[0], limit);
    if (chosen.length === 2) {
      const sets = chosen.map((g) => new Set(said(g).map(key)));
      const shared = chosen.flatMap(said).filter((t) => sets[0].has(key(t)) && sets[1].has(key(t)));
      const [one, other] = chosen.map((g) => strongest(g, limit));  // in turns, so that both are there
      const turns = Array.from({ length: Math.max(one.length, other.length) }, (_, n) => [one[n], other[n]]).flat();
      kept = [...new Set([...shared, ...turns.filter(Boolean)])].slice(0, 2 * limit);
    }
    const objects = new Map();
    for (const t of kept) {
      if (!objects.has(key(t))) objects.set(key(t), []);
      objects.get(key(t)).push(t);
    }
    const regard = (list) => list.reduce((sum, t) => sum + (t.regard ?? 0), 0) / list.length;
    const sorted = [...objects.entries()].sort((a, b) => regard(a[1]) - regard(b[1]) || (a[0] < b[0] ? -1 : 1));
    const nodes = [], edges = [];
    let high = 0;
    chosen.forEach((g, n) => {
      const label = short(plain(groups[g].name), 30);
      nodes.push({
        data: { id: `g${g}`, label, wide: widthOf(label, GROUP_FONT), kind: "group", list: kept.filter((t) => t.group === g) },
        position: { x: chosen.length === 1 ? 0 : n ? 620 : -620, y: 0 },
      });
    });
    const columns = { one: [], both: [], other: [] };
    for (const entry of sorted) {
      const of = new Set(entry[1].map((t) => t.group));
      columns[of.size > 1 ? "both" : of.has(chosen[0]) ? "one" : "other"].push(entry);
    }
    // Of two groups a box names the predicate too: three columns leave no room for words on lines.
    const named = (entry) => {
      const object = short(plain(entry[1][0].object), 34);
      if (chosen.length === 1) return object;
      const predicates = [...new Set(entry[1].map((t) => plain(t.predicate)))];
      return `${short(predicates.join(", "), 16)} ${short(object, 24)}`;
    };
    const place = (entry, x, y) => {
      const id = `o${nodes.length}`;
      const label = named(entry);
      nodes.push({ data: { id, label, wide: widthOf(label, OBJECT_FONT), kind: "object", list: entry[1] }, position: { x, y } });
      for (const t of entry[1]) {
        edges.push({ data: { id: `e${edges.length}`, source: `g${t.group}`, target: id, label: chosen.length === 1 ? short(plain(t.predicate), 24) : "",
          regard: t.label || "neutral", width: Math.min(7, 1 + Math.log2(t.count + 1)), list: [t] } });
      }
    };
    if (chosen.length === 1) {
      const count = columns.one.length;
      // Two columns beside the group, from negative at the top to positive at the bottom: labels are
      // wider than they are high, so a circle would crowd them at its poles. In a narrow window, one
      // column.
      const half = Math.ceil(count / 2);
      const narrow = by("canvas").clientWidth < 600;
      columns.one.forEach((entry, n) => {
        if (narrow) {
          place(entry, 300, (n - (count - 1) / 2) * 46);
          return;
        }
        const row = Math.floor(n / 2), bend = Math.cos(((row + 0.5) / half - 0.5) * Math.PI);
        place(entry, (n % 2 ? 1 : -1) * (300 + 170 * bend), (row - (half - 1) / 2) * 58);
      });
    } else {
      const ROW = 40, GAP = 64;
      const stack = (list, x) => list.forEach((entry, n) => place(entry, x, (n - (list.length - 1) / 2) * ROW));
      const wide = (list) => Math.max(60, ...list.map((entry) => widthOf(named(entry), OBJECT_FONT)));
      const [first, second] = nodes, between = wide(columns.both) / 2 + GAP;
      first.position.x = -between - first.data.wide / 2;
      second.position.x = between + second.data.wide / 2;
      const left = between + first.data.wide + GAP + wide(columns.one) / 2;
      const right = between + second.data.wide + GAP + wide(columns.other) / 2;
      stack(columns.both, 0);
      stack(columns.one, -left);
      stack(columns.other, right);
      // The picture is as high as its longest column needs at the size that its width allows.
      const across = left + right + (wide(columns.one) + wide(columns.other)) / 2 + 60;
      const rows = Math.max(...Object.values(columns).map((list) => list.length));
      high = Math.round(rows * ROW * Math.min(1, by("canvas").clientWidth / across)) + 80;
    }
    by("canvas").style.minHeight = `${high}px`;
    if (view) view.destroy();
    view = cytoscape({
      container: by("canvas"), elements: { nodes, edges }, layout: { name: "preset", padding: 30 },
      minZoom: 0.2, maxZoom: 3,
      style: [
        { selector: "node", style: { label: "data(label)", color: colour("ink"), "font-size": 15, "text-valign": "center",
          "text-halign": "center", "background-color": colour("card"), "border-color": colour("line"), "border-width": 1.5,
          shape: "round-rectangle", width: "data(wide)", height: 30 } },
        { selector: "node[kind = 'group']", style: { "font-weight": "bold", "font-size": 19, "border-color": colour("accent"), "border-width": 2.5, height: 38 } },
        { selector: "edge", style: { label: "data(label)", "font-size": 12, color: colour("soft"), width: "data(width)", "curve-style": "bezier",
          "text-rotation": "autorotate", "text-background-color": colour("card"), "text-background-opacity": 1, "text-background-padding": 2,
          "line-color": colour("neutral") } },
        { selector: "edge[regard = 'positive']", style: { "line-color": colour("positive") } },
        { selector: "edge[regard = 'negative']", style: { "line-color": colour("negative"), "line-style": "dashed" } },
        { selector: ":selected", style: { "border-color": colour("accent"), "border-width": 3, "overlay-opacity": 0.08 } },
      ],
    });
    view.on("tap", "node, edge", (event) => {
      const list = make("ul");
      for (const t of event.target.data("list")) {
        const item = make("li"), link = make("button", sentence(t), "link");
        link.addEventListener("click", () => showOrigins(t));
        item.append(link, make("small", ` regard ${regardOf(t)}, said ${t.count}×`));
        list.append(item);
      }
      by("chosen").replaceChildren(list);
    });
    document.getElementById("canvas").kgbias = view;  // for scripts that drive the page, such as the tests
  };
  options(by("graph-group"));
  options(by("graph-other"), "no other");
  chooseArm("graph-arm");
  for (const id of ["graph-group", "graph-other", "graph-arm", "graph-limit"]) by(id)?.addEventListener("input", picture);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", picture);
  if (groups.length) picture();

  // for the script of the first section
  document.kgbias = { make, by, groups, arms, triples, evidence, showOrigins };
})();
