// One statement at a time. What a rater does is sent, and sent again until the server has it; nothing
// else can be done meanwhile, so what the page shows as done is done.
const $ = (id) => document.getElementById(id);
const { measures } = JSON.parse($("about").textContent);
const remembered = "kgbias rater";
const AGAIN = 2000; // milliseconds
let measure, rater = "", shown = null, latest = "", busy = false;

function element(kind, text, parent) {
  const made = document.createElement(kind);
  made.textContent = text;
  parent.append(made);
  return made;
}

function showGuide() {
  const guide = $("guide");
  guide.textContent = "";
  element("h2", `The guide (${measure.id})`, guide);
  const list = element("dl", "", guide);
  measure.labels.forEach((label, n) => {
    element("dt", `${n + 1} ${label.name}`, list);
    element("dd", label.meaning, list);
    element("dd", label.examples.map((text) => `“${text}”`).join(" "), list);
  });
  const rules = element("ul", "", guide);
  measure.rules.forEach((rule) => element("li", rule, rules));
  $("question").textContent = measure.question + (measure.masked ? " The group’s name is hidden." : "");
  $("labels").textContent = "";
  measure.labels.forEach((label, n) => {
    const button = document.createElement("button");
    button.type = "button";
    element("kbd", String(n + 1), button);
    button.append(` ${label.name}`);
    button.addEventListener("click", () => act("label", label.name));
    $("labels").append(button);
  });
}

function enable(on) {
  for (const button of $("work").querySelectorAll("button")) button.disabled = !on || (button.id === "undo" ? !latest : !shown);
}

async function act(what, label = "") {
  if (busy || !(what === "next" || (what === "undo" ? latest : shown))) return;
  busy = true;
  enable(false);
  // To take "the last" back twice would take back two: so the one that is meant goes along.
  const statement = { next: "", undo: latest }[what] ?? shown.id;
  const note = what === "undo" ? "" : $("note").value.trim();
  const body = JSON.stringify({ measure: measure.name, rater, do: what, statement, label, note });
  for (;;) {
    let answer;
    try {
      answer = await fetch("/label", { method: "POST", body, headers: { "Content-Type": "application/json", "X-Kgbias": "label" } });
      if (answer.ok) {
        took(await answer.json());
        break;
      }
      if (answer.status < 500 && answer.status !== 408) {
        const told = await answer.json().catch(() => ({}));
        $("told").textContent = `Not saved: ${told.error || "open this page again, with the token"}.`;
        break;
      }
    } catch {
      // The server does not answer.
    }
    $("told").textContent = "Not saved yet: the server does not answer. Trying again …";
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
  busy = false;
  enable(true);
}

function took(answer) {
  rater = answer.rater;
  latest = answer.latest;
  shown = answer.statement;
  const { labelled, skipped, by_all, raters, statements } = answer.progress;
  $("progress").textContent = `You: ${labelled} labelled, ${skipped} skipped. All ${raters} rater${raters === 1 ? "" : "s"}: ${by_all} of ${statements.toLocaleString("en")}`;
  $("told").textContent = "";
  $("note").value = "";
  $("statement").textContent = shown ? shown.text : "Nothing is left for you to label.";
  document.documentElement.dataset.ready = String(Number(document.documentElement.dataset.ready || 0) + 1);
  $("statement").focus({ preventScroll: true });
}

for (const m of measures) element("option", m.name.replace("_", " "), $("measure")).value = m.name;
$("which").hidden = measures.length === 1;
try {
  $("rater").value = localStorage.getItem(remembered) || "";
} catch {
  // A browser that keeps nothing asks again.
}
$("who").addEventListener("submit", (event) => {
  event.preventDefault();
  rater = $("rater").value;
  measure = measures.find((m) => m.name === $("measure").value);
  try {
    localStorage.setItem(remembered, rater);
  } catch {
    // As above.
  }
  $("who").hidden = true;
  $("work").hidden = false;
  showGuide();
  act("next");
});
$("skip").addEventListener("click", () => act("skip"));
$("undo").addEventListener("click", () => act("undo"));
$("note").addEventListener("keydown", (event) => {
  if (event.key === "Escape") $("statement").focus();
});
document.addEventListener("keydown", (event) => {
  if ($("work").hidden || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target instanceof HTMLTextAreaElement) return;
  const label = measure.labels[Number(event.key) - 1];
  if (label) act("label", label.name);
  else if (event.key === "s") act("skip");
  else if (event.key === "u") act("undo");
  else if (event.key === "n") $("note").focus();
  else return;
  event.preventDefault();
});
document.documentElement.dataset.open = "";
