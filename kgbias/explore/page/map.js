// The map: a disc for each unit, and in it the objects said of it. Of the objects in sight, those said
// most often are drawn, never more than MOST; zooming in shows more.
const MOST = 1500;
const map = { renderer: null, graph: null, lasso: false, drawn: null, note: "", unnamed: 0 };

const mapSums = () => {
  const kind = state.by, found = selection();
  return {
    kind,
    units: sums(found, maps[kind].unit.length, unitOf(kind)),
    objects: sums(found, texts.object.length, (n) => row.object[n]),
  };
};

const inView = () => {
  const box = by("canvas"), corners = [[0, 0], [box.clientWidth, box.clientHeight]];
  const [a, b] = corners.map(([x, y]) => map.renderer.viewportToGraph({ x, y }));
  return [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)];
};

// The objects to draw: of those in sight, the ones said most often.
const strongest = (all, place, most) => {
  const [left, low, right, high] = map.renderer.getGraph().order ? inView() : [-1e9, -1e9, 1e9, 1e9];
  const found = [];
  for (let n = 0; n < all.said.length; n++) {
    if (!all.said[n] || !place.home[n]) continue;
    const x = place.points[2 * n], y = place.points[2 * n + 1];
    if (x >= left && x <= right && y >= low && y <= high) found.push(n);
  }
  if (found.length <= most) return found;
  // The lowest count that leaves few enough, then those above it and as many at it as fit.
  const order = Uint32Array.from(found, (n) => all.said[n]).sort();
  const least = order[order.length - most];
  const above = found.filter((n) => all.said[n] > least);
  return above.concat(found.filter((n) => all.said[n] === least).slice(0, most - above.length));
};

// The whole map, discs and dots included: the frame stays fixed whatever is drawn.
const extent = (place) => {
  const box = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
  place.radii.forEach((r, n) => ["x", "y"].forEach((axis, k) => {
    const at = place.centres[2 * n + k];
    box[axis] = [Math.min(box[axis][0], at - r), Math.max(box[axis][1], at + r)];
  }));
  place.home.forEach((home, n) => home && ["x", "y"].forEach((axis, k) => {
    const at = place.points[2 * n + k];
    box[axis] = [Math.min(box[axis][0], at), Math.max(box[axis][1], at)];
  }));
  return box;
};

// The smallest visible size of a dot, in the map's coordinates.
const seen = () => 1.6 / map.renderer.scaleSize(1);
const drawMap = (fresh = false, least = seen(), again = false) => {
  const { kind, units, objects } = fresh || !map.drawn ? (map.drawn = mapSums()) : map.drawn;
  const place = maps[kind], step = place.step[0], { page, ink, line, soft } = colours(), graph = map.graph;
  const chosen = strongest(objects, place, MOST);
  const found = selection(), unitColour = keyColours(found, units, place.unit.length, unitOf(kind)), objectColour = keyColours(found, objects, texts.object.length, (n) => row.object[n]);
  const inside = kind === "meaning";  // regions have no edge: their names stand among their dots
  graph.clear();
  place.unit.forEach((_, n) => {
    const hue = unitColour(n);
    graph.addNode(`u${n}`, {
      x: place.centres[2 * n], y: place.centres[2 * n + 1], size: place.radii[n], unit: n,
      color: inside ? "rgba(0,0,0,0)" : mix(page, units.n[n] ? hue : line, units.n[n] ? 0.2 : 0.25), inside, zIndex: 0,
      label: short(unitName(kind, n), 40), count: units.said[n], ink: units.n[n] ? ink : soft, type: "circle", forceLabel: true,
    });
  });
  for (let n = 0; n < place.likeness.length; n++) {
    const a = `u${place.ties[2 * n]}`, b = `u${place.ties[2 * n + 1]}`, like = place.likeness[n] / 1000;
    if (!graph.hasEdge(a, b)) graph.addEdge(a, b, { size: 1 + 5 * like, color: mix(page, soft, 0.18 + 0.35 * like) });
  }
  for (const n of chosen) {
    graph.addNode(`o${n}`, {
      x: place.points[2 * n], y: place.points[2 * n + 1], object: n, zIndex: 1, ink: soft, type: "circle",
      size: Math.max(least, step * Math.min(0.82, 0.4 + 0.07 * Math.log2(1 + objects.said[n]))), color: objectColour(n),
      label: short(texts.object[n], 40), count: objects.said[n],
    });
  }
  map.renderer.setCustomBBox(extent(place));
  map.renderer.refresh();
  const right = seen();  // known only once the map has been placed
  if (Math.abs(right - least) > 0.05 * right && !again) return drawMap(false, right, true);
  const shown = objects.said.reduce((sum, n) => sum + (n > 0), 0);
  map.note = chosen.length < shown
    ? `${number(chosen.length)} of ${plural(shown, "object")} are drawn: those in sight that were said most often. Zoom in for more.`
    : `${plural(shown, "object")}.`;
  noteMap();
};
const noteMap = () => {
  by("map-note").textContent = map.note + (map.unnamed ? ` ${plural(map.unnamed, "name")} ${map.unnamed === 1 ? "has" : "have"} no room here: zoom in, or point at a disc.` : "");
};

const unitText = (radius) => Math.max(11, Math.min(18, 9 + radius / 12));
// Where names stand in the picture being drawn, so that none lies on another.
let named = [], unitNames = null;
const covered = (box) => named.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
const room = (box) => {
  if (covered(box)) return false;
  named.push(box);
  return true;
};
// A unit's name stands above its disc, below it or on it, wherever there is room: whole if it can, else cut short.
// What is said most is placed first; a name without room is left out, and the note below the map says so.
const placeUnitNames = (sizeOf) => {
  const { width, height } = map.renderer.getDimensions(), found = new Map();
  const units = map.graph.mapNodes((id, data) => ({ id, ...data })).filter((data) => data.unit !== undefined).sort((a, b) => b.count - a.count);
  map.unnamed = 0;
  for (const { id, label, inside, ink, ...data } of units) {
    const p = map.renderer.graphToViewport(data), r = sizeOf(data.size);
    if (p.x < 0 || p.x > width || p.y + r < 0 || p.y - r > height || (r < 7 && !inside)) continue;
    const size = unitText(r), font = `600 ${size}px ${FONT}`, half = size * 0.6;
    const above = Math.max(size, p.y - r - size * 0.7), tries = inside ? [p.y] : [above, Math.min(height - size, p.y + r + size * 0.7), p.y];
    const short = fitting(label, Math.max(104, r * 2.7), font), texts = inside || short === label ? [label] : [label, short];
    const place = () => {
      for (const text of texts) for (const y of tries) {
        const wide = widthOf(text, font), x = wide < width ? Math.min(Math.max(p.x, wide / 2 + 2), width - wide / 2 - 2) : p.x;  // a name at the rim is not cut off
        if (room([x - wide / 2, y - half, x + wide / 2, y + half])) return { text, x, y, size, ink };
      }
      map.unnamed += 1;
    };
    const placed = place();
    if (placed) found.set(id, placed);
  }
  return found;
};
const writeMapLabel = (context, font, text, x, y, wide, ink) => {
  context.font = font;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = wide;
  context.strokeStyle = colours().page;
  context.globalAlpha = 0.85;
  context.strokeText(text, x, y);
  context.globalAlpha = 1;
  context.fillStyle = ink;
  context.fillText(text, x, y);
};
// Where an object's name begins: right of its dot or, at the rim, left of it.
const beside = (x, r, wide) => (x + r + 3 + wide > map.renderer.getDimensions().width ? x - r - 3 - wide : x + r + 3);
const drawMapLabel = (context, data) => {
  unitNames ??= placeUnitNames((size) => map.renderer.scaleSize(size));
  if (data.unit !== undefined) {
    const own = unitNames.get(`u${data.unit}`);
    context.textAlign = "center";
    if (own) writeMapLabel(context, `600 ${own.size}px ${FONT}`, own.text, own.x, own.y, 4, own.ink);
    return;
  }
  if (data.size < 6.5) return;
  const font = `400 11.5px ${FONT}`, wide = widthOf(data.label, font), x = beside(data.x, data.size, wide);
  if (!room([x, data.y - 7, x + wide, data.y + 7])) return;
  context.textAlign = "left";
  writeMapLabel(context, font, data.label, x, data.y, 3, data.ink);
};
const drawMapHover = (context, data) => {
  const { page, ink, accent, line } = colours();
  const text = `${data.label} · ${number(data.count)}×`;
  context.font = `600 13px ${FONT}`;
  const wide = context.measureText(text).width + 16, x = data.x - wide / 2, y = data.y - Math.min(data.size, 60) - 30;
  context.beginPath();
  context.arc(data.x, data.y, data.size + 1.5, 0, 2 * Math.PI);
  context.strokeStyle = accent;
  context.lineWidth = 2;
  context.stroke();
  context.beginPath();
  context.roundRect(x, y, wide, 25, 6);
  context.fillStyle = page;
  context.fill();
  context.strokeStyle = line;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = ink;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, data.x, y + 13);
};

const startMap = () => {
  map.graph = new libraries.Graph();
  try {
    map.renderer = new libraries.Sigma(map.graph, by("canvas"), {
      allowInvalidContainer: true, itemSizesReference: "positions", zoomToSizeRatioFunction: (x) => x,
      defaultDrawNodeLabel: drawMapLabel, defaultDrawNodeHover: drawMapHover, labelRenderedSizeThreshold: 6.5,
      labelDensity: 1.2, labelGridCellSize: 110, zIndex: true, stagePadding: 24, minCameraRatio: 0.004, maxCameraRatio: 1.6,
      hideEdgesOnMove: true, enableEdgeEvents: false, doubleClickZoomingRatio: 2.2,
    });
  } catch (problem) {
    by("canvas").hidden = true;
    by("no-map").hidden = false;
    return;
  }
  let waiting = 0;
  map.renderer.getCamera().on("updated", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (state.view === "map") drawMap(); }, 160);
  });
  map.renderer.on("clickNode", ({ node }) => {
    const data = map.graph.getNodeAttributes(node);
    if (data.object !== undefined) openObject(data.object);
    else openUnit(state.by, data.unit);
  });
  map.renderer.on("enterNode", () => { by("canvas").style.cursor = "pointer"; });
  map.renderer.on("leaveNode", () => { by("canvas").style.cursor = ""; });
  map.renderer.on("beforeRender", () => { named = []; unitNames = null; });
  map.renderer.on("afterRender", () => { placeLasso(); noteMap(); });
  by("canvas").addEventListener("keydown", (event) => {
    const camera = map.renderer.getCamera(), { x, y, ratio } = camera.getState(), far = 0.12 * ratio;
    const moves = { ArrowLeft: { x: x - far }, ArrowRight: { x: x + far }, ArrowUp: { y: y + far }, ArrowDown: { y: y - far }, "+": { ratio: ratio / 1.4 }, "=": { ratio: ratio / 1.4 }, "-": { ratio: ratio * 1.4 }, 0: { x: 0.5, y: 0.5, ratio: 1 } };
    if (!(event.key in moves)) return;
    event.preventDefault();
    camera.setState({ ...camera.getState(), ...moves[event.key] });
  });
  startLasso();
};
const moveCamera = (target) => {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  map.renderer.getCamera().animate(target, { duration: still ? 0 : 350 });
};
const zoomBy = (factor) => {
  const { ratio } = map.renderer.getCamera().getState();
  moveCamera({ ratio: Math.min(1.6, Math.max(0.004, ratio * factor)) });
};

// ---- the lasso: a line around a selection, kept in the map's coordinates ----
const placeLasso = () => {
  const drawn = by("lasso-line"), points = map.trace ?? state.lasso;
  const on = points && state.view === "map";
  drawn.setAttribute("points", on ? points.map(([x, y]) => {
    const p = map.renderer.graphToViewport({ x, y });
    return `${p.x.toFixed(1)},${p.y.toFixed(1)}`;
  }).join(" ") : "");
};
const setLasso = (on) => {
  map.lasso = on;
  by("lasso").classList.toggle("on", on);
  by("lasso-button").setAttribute("aria-pressed", on);
};
const startLasso = () => {
  const layer = by("lasso");
  const at = (event) => {
    const box = layer.getBoundingClientRect();
    const p = map.renderer.viewportToGraph({ x: event.clientX - box.left, y: event.clientY - box.top });
    return [p.x, p.y];
  };
  layer.addEventListener("pointerdown", (event) => {
    layer.setPointerCapture(event.pointerId);
    map.trace = [at(event)];
  });
  layer.addEventListener("pointermove", (event) => {
    if (!map.trace) return;
    map.trace.push(at(event));
    placeLasso();
  });
  layer.addEventListener("pointerup", () => {
    const trace = map.trace ?? [];
    map.trace = null;
    setLasso(false);
    const every = Math.max(1, Math.ceil(trace.length / 48));  // an address has room for this many points
    const points = trace.filter((_, n) => n % every === 0).map((p) => p.map(Math.round));
    set({ lasso: points.length > 2 ? points : null });
  });
  layer.addEventListener("pointercancel", () => { map.trace = null; setLasso(false); });
};

// What is in sight, as SVG.
const mapPicture = () => {
  const box = by("canvas"), [width, height] = [box.clientWidth, box.clientHeight];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  const lines = svg("g"), dots = svg("g"), words = svg("g");
  map.graph.forEachEdge((_, data, from, to) => {
    const [a, b] = [from, to].map((id) => map.renderer.graphToViewport(map.graph.getNodeAttributes(id)));
    lines.append(svg("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, stroke: data.color, "stroke-width": Math.max(0.5, data.size / 2) }));
  });
  const { ratio } = map.renderer.getCamera().getState();
  named = [];
  const nodes = map.graph.mapNodes((_, data) => data), isUnit = (data) => data.unit !== undefined, scaled = (size) => map.renderer.scaleSize(size, ratio);
  const write = (text, x, y, anchor, size, weight, fill) => words.append(svg("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central", "font-size": size, "font-weight": weight, fill }, plain(text)));
  for (const { text, x, y, size, ink } of placeUnitNames(scaled).values()) write(text, x, y, "middle", size, 600, ink);
  for (const data of nodes.sort((a, b) => isUnit(b) - isUnit(a) || b.count - a.count)) {
    const p = map.renderer.graphToViewport(data), r = scaled(data.size);
    if (p.x + r < 0 || p.y + r < 0 || p.x - r > width || p.y - r > height) continue;
    dots.append(svg("circle", { cx: p.x.toFixed(1), cy: p.y.toFixed(1), r: Math.max(0.4, r).toFixed(1), fill: data.color }));
    if (isUnit(data) || r < 6.5) continue;
    const wide = widthOf(data.label, `400 11.5px ${FONT}`), x = beside(p.x, r, wide);
    if (!room([x, p.y - 7, x + wide, p.y + 7])) continue;
    write(data.label, x, p.y, "start", 11.5, 400, data.ink);
  }
  picture.append(lines, dots, words);
  return picture;
};
