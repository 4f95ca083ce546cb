// How the graph grew: for each round of the crawl, the new statements and all so far. The two handles
// choose rounds, for everything else on the page too.
let playing = 0;
const inSamples = (source = state.source) => about.sources[source].kind === "stories";  // told in samples: nothing grows from what was said
const roundName = (n, source = state.source) => (inSamples(source) ? `sample ${n + 1}` : n === 0 ? "the first prompts" : `round ${n}`);
const drawTimeline = () => {
  const last = BASE.to, { start, end } = about.sources[state.source];
  by("timeline").hidden = last === 0;
  if (!last) return;
  const found = passingBut(["rounds"]), fresh = new Uint32Array(last + 1);
  for (const n of found.rows) {
    let first = last;
    for (let k = saidAt[n]; k < saidAt[n + 1]; k++) first = Math.min(first, said.iteration[k]);
    fresh[first] += 1;
  }
  const box = by("growth"), width = Math.max(240, box.clientWidth), high = 118, { accent, line, ink, soft } = colours();
  const side = 52, top = 20, floor = high - 18;  // room for the axes
  const slot = (width - 2 * side) / (last + 1), bar = Math.min(56, slot * 0.76), most = Math.max(1, ...fresh), total = Math.max(1, found.rows.length);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${high}`, width, height: high, "aria-hidden": true, "font-size": 11, fill: soft });
  const write = (x, y, text, anchor, fill) => picture.append(svg("text", { x, y, "text-anchor": anchor, fill }, text));
  const rule = (x1, y1, x2, y2) => picture.append(svg("line", { x1, y1, x2, y2, stroke: line }));
  // New statements on the left, all so far on the right, rounds below.
  for (const share of [0, 0.5, 1]) {
    const y = floor - share * (floor - top);
    rule(side, y, width - side, y);
    if (share !== 0.5 || most > 1) write(side - 6, y + 4, number(Math.round(share * most)), "end", accent);
    if (share !== 0.5 || total > 1) write(width - side + 6, y + 4, number(Math.round(share * total)), "start", ink);
  }
  write(0, 10, "new statements", "start", accent);
  write(width, 10, "all so far", "end", ink);
  const each = Math.ceil(34 / slot);
  for (let round = 0; round <= last; round += each) write(side + (round + 0.5) * slot, high - 4, inSamples() ? number(round + 1) : round === 0 && slot > 70 ? "first prompts" : number(round), "middle", soft);
  write(width, high - 4, inSamples() ? "sample" : "round", "end", soft);
  let sum = 0;
  const curve = [];
  fresh.forEach((n, round) => {
    const on = round >= state.from && round <= state.to, tall = (n / most) * (floor - top);
    picture.append(svg("rect", { x: side + (round + 0.5) * slot - bar / 2, y: floor - tall, width: bar, height: Math.max(1, tall), rx: 2, fill: on ? accent : line, "fill-opacity": 0.55 }));
    sum += n;
    curve.push(`${side + (round + 0.5) * slot} ${floor - (sum / total) * (floor - top)}`);
  });
  picture.append(svg("polyline", { points: curve.join(" "), fill: "none", stroke: ink, "stroke-width": 1.5, "stroke-opacity": 0.6 }));
  box.replaceChildren(picture);
  by("from").parentElement.style.marginInline = `${side + slot / 2 - 7}px`;  // a handle stands under its round
  for (const [id, value] of [["from", state.from], ["to", state.to]]) {
    by(id).max = last;
    by(id).value = Math.min(value, last);
  }
  let own = 0;
  for (let k = saidAt[start]; k < saidAt[end]; k++) own = Math.max(own, said.iteration[k]);
  const whole = inSamples() ? plural(own + 1, "sample") : `${plural(own, "round")} of expansion after the first prompts`;
  const shown = fresh.slice(state.from, state.to + 1).reduce((a, b) => a + b, 0);
  by("rounds").textContent = state.from === 0 && state.to === last
    ? `${whole}; ${plural(found.rows.length, "statement")}.`
    : `${state.from === state.to ? roundName(state.from) : `${roundName(state.from)} to ${roundName(state.to)}`}: ${plural(shown, "new statement")}.`;
};
const stopPlaying = () => {
  clearInterval(playing);
  playing = 0;
  by("play").textContent = "Play";
};
const startTimeline = () => {
  by("from").addEventListener("input", () => set({ from: Math.min(Number(by("from").value), state.to) }));
  by("to").addEventListener("input", () => set({ to: Math.max(Number(by("to").value), state.from) }));
  by("play").addEventListener("click", () => {
    if (playing) return stopPlaying();
    set({ to: state.from });
    by("play").textContent = "Stop";
    playing = setInterval(() => {
      if (state.to >= BASE.to) stopPlaying();
      else set({ to: state.to + 1 });
    }, 900);
  });
};
