// What is folded, and how to get about: links open the folds that they lead into, long tables can be
// searched, the list of sections says which is in sight, and a print has everything open.
(() => {
  const reveal = () => {
    let target = null;
    try { target = by(decodeURIComponent(location.hash.slice(1).split("?")[0])); } catch { return; }  // anyone can write an address
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const own = target.querySelector(":scope > details.section");
    if (own) own.open = true;
  };
  addEventListener("hashchange", reveal);
  for (const link of document.querySelectorAll('a[href^="#"]')) link.addEventListener("click", () => setTimeout(reveal));
  reveal();

  const LONG = 12;  // rows
  for (const table of document.querySelectorAll(".exhibit table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length <= LONG) continue;
    const bar = make("p", null, "controls"), label = make("label", "Search this table "), box = make("input"), found = make("span", null, "soft");
    box.type = "search";
    found.setAttribute("role", "status");
    label.append(box);
    bar.append(label, found);
    const lowered = rows.map((row) => row.textContent.toLowerCase());
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = 0;
      rows.forEach((row, n) => {
        row.hidden = !wanted.every((word) => lowered[n].includes(word));
        kept += !row.hidden;
      });
      found.textContent = wanted.length ? `${number(kept)} of ${number(rows.length)} rows` : "";
    });
    table.closest(".scroll").before(bar);
  }

  const links = new Map([...document.querySelectorAll("#sections a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watcher = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) seen[isIntersecting ? "add" : "delete"](target.id);
    const first = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) id === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }, { rootMargin: "-15% 0px -55%" });
  for (const id of links.keys()) if (by(id)) watcher.observe(by(id));

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
})();
