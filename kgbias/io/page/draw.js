// Elements, colours and numbers, the same everywhere.
// Model text reaches a page only through textContent, or as a label on a canvas.
const by = (id) => document.getElementById(id);
const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (className) element.className = className;
  return element;
};
const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes, text) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const button = (text, action, className) => {
  const element = make("button", text, className);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
};
const option = (text, value) => {
  const element = make("option", text);
  element.value = value;
  return element;
};
// Run an action when an element's width has changed and stays the same for a moment.
const onWidth = (element, action) => {
  let wide = element.clientWidth, waiting = 0;
  new ResizeObserver(() => {
    if (element.clientWidth === wide) return;
    wide = element.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(action, 120);
  }).observe(element);
};
const number = (n) => n.toLocaleString("en");
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
// Characters that reverse or hide a line, and those that XML cannot hold, become spaces, for text without an element of its own.
const plain = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Cs}\ufffe\uffff]/gu, " ");
const short = (text, limit) => {
  const letters = [...plain(text)];
  return letters.length > limit ? `${letters.slice(0, limit - 1).join("").trimEnd()}…` : letters.join("");
};
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
let palette;
const colours = () => (palette ??= Object.fromEntries(
  ["ink", "soft", "line", "page", "card", "accent", "positive", "neutral", "negative", "first", "second"].map((name) => [name, colour(name)])));
const dark = matchMedia("(prefers-color-scheme: dark)");
const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mix = (a, b, share) => {
  const [x, y] = [parts(a), parts(b)];
  return `#${x.map((v, n) => Math.round(v + (y[n] - v) * share).toString(16).padStart(2, "0")).join("")}`;
};
// From orange through grey to blue, which no common colour blindness confuses; grey is neither, or not measured.
const netColour = (value) => {
  const { positive, neutral, negative } = colours();
  if (value === null) return neutral;
  return mix(neutral, value < 0 ? negative : positive, Math.min(1, Math.abs(value) * 1.6));
};
// Mean regard, from −1 to 1.
const signed = (value) => {
  const size = Math.abs(value).toFixed(2);
  return `${Number(size) === 0 ? "" : value > 0 ? "+" : "−"}${size}`;
};
const netText = (value) => (value === null ? "not measured" : signed(value));

const pen = make("canvas").getContext("2d");
const widthOf = (text, font) => {
  pen.font = font;
  return pen.measureText(text).width;
};
// As much of the text as fits into a width.
const fitting = (text, width, font) => {
  let shown = short(text, 90);
  if (widthOf(shown, font) <= width) return shown;
  let low = 1, high = [...shown].length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(short(text, middle), font) <= width) low = middle;
    else high = middle - 1;
  }
  return short(text, low);
};
const save = (name, kind, parts) => {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};
// An optgroup of groups for each category.
const fillGroups = (select, categories) => {
  const parts = new Map();
  categories.forEach((category, n) => {
    if (!parts.has(category)) {
      const part = make("optgroup");
      part.label = category || "other";
      parts.set(category, part);
      select.append(part);
    }
    parts.get(category).append(option(short(texts.group[n], 60), n));
  });
};
