// What a server shows while a crawl runs: how far it is, and new statements, for which the page is loaded
// again as its address says. It waits for a reader who is in the middle of something.
const LIVE = 3000, READ = "kgbias: warned";  // milliseconds between two looks; the reader has seen the warning

const busy = () =>
  !by("details").hidden || state.lasso || state.community >= 0 || state.meaning >= 0 || by("warning").open || by("export").open || playing || map.trace ||
  /^(INPUT|SELECT)$/.test(document.activeElement?.tagName) || String(getSelection()).length > 0;
const again = () => {
  try {
    sessionStorage.setItem(READ, document.body.classList.contains("blurred") ? "blurred" : "shown");
  } catch {}  // then the warning is shown again
  // In other data, these numbers are of another statement, community, region or place.
  Object.assign(state, { row: -1, community: -1, meaning: -1, lasso: null });
  keep("replaceState");
  location.reload();
};
const warnedBefore = () => {
  try {
    const how = about.served ? sessionStorage.getItem(READ) : null;
    sessionStorage.removeItem(READ);
    return how;
  } catch {
    return null;
  }
};
const drawLive = ({ version, running }) => {
  const fresh = version !== about.version;
  by("live").hidden = !running.length && !fresh;
  by("live").replaceChildren(...running.map((line) => make("p", line)));
  if (!fresh) return;
  if (!busy()) return again();
  const line = make("p", "There are new statements or figures: the page shows them once you have finished here. ");
  line.append(button("Show them now", again));
  by("live").append(line);
};
const startLive = () => {
  if (!about.served) return;
  const look = async () => {
    try {
      drawLive(await (await fetched("live")).json());
    } catch {
      by("live").hidden = false;
      by("live").replaceChildren(make("p", "The server does not answer: the page stays as it is."));
    }
    setTimeout(look, LIVE);
  };
  look();
};
