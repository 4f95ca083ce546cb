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
// Only what has changed is written anew: a line that is replaced is read out again, and a button loses the focus.
const liveLines = make("div"), offer = make("p", "There are new statements or figures: the page shows them once you have finished here. ");
const drawLines = (lines) => {
  lines.forEach((line, n) => {
    const part = liveLines.children[n] ?? liveLines.appendChild(make("p"));
    if (part.textContent !== line) part.textContent = line;
  });
  while (liveLines.children.length > lines.length) liveLines.lastChild.remove();
};
const drawLive = ({ version, running }) => {
  const fresh = version !== about.version;
  if (fresh && !busy()) return again();
  by("live").hidden = !running.length && !fresh;
  if (fresh && offer.hidden) announce("There are new statements or figures.");
  offer.hidden = !fresh;
  drawLines(running);
};
const startLive = () => {
  if (!about.served) return;
  offer.append(button("Show them now", again));
  offer.hidden = true;
  by("live").append(liveLines, offer);
  const look = async () => {
    try {
      drawLive(await (await fetched("live")).json());
    } catch {
      by("live").hidden = false;
      offer.hidden = true;  // the server that would be asked is gone
      drawLines(["The server does not answer: the page stays as it is."]);
    }
    setTimeout(look, LIVE);
  };
  look();
};
