// The page's data: a JSON head, and blocks of columns that are unpacked when needed. They are in the page,
// or come from the server that the page came from.
const about = JSON.parse(by("about").textContent);
const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i16: Int16Array, i32: Int32Array };

const fromBase64 = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) bytes[n] = binary.charCodeAt(n);
  return bytes;
};

// One string holding all texts, cut by their lengths.
const cutTexts = (all, lengths) => {
  const texts = new Array(lengths.length);
  let at = 0;
  for (let n = 0; n < lengths.length; n++) texts[n] = all.slice(at, (at += lengths[n]));
  return texts;
};

// What is asked by place is only right for the data that this page was made for.
const fetched = async (path, values = {}) => {
  const answer = await fetch(`${path}?${new URLSearchParams({ ...values, v: about.version })}`, { credentials: "same-origin" });
  if (answer.status === 409) throw Object.assign(new Error("the statements have changed: load the page again"), { stale: true });
  if (!answer.ok) throw new Error(`the server says ${answer.status} ${answer.statusText}`);
  return answer;
};
const packed = async (name) => {
  if (about.served) return (await fetched(`data/${name}`)).body;
  const element = by(`block-${name}`), bytes = fromBase64(element.textContent);
  element.remove();  // its text is as large as the file
  return new Blob([bytes]).stream();
};
const unpack = async (name) => {
  const stream = (await packed(name)).pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const columns = {};
  for (const [column, [kind, offset, length]] of Object.entries(about.columns[name])) {
    columns[column] = kind === "text"
      ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(buffer, offset, length))
      : new ARRAYS[kind](buffer, offset, length);
  }
  for (const [column, [kind]] of Object.entries(about.columns[name])) {
    if (kind === "text") columns[column] = cutTexts(columns[column], columns[`${column}/lengths`]);
  }
  return columns;
};

const parsed = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", done, { once: true });
});
const blocks = {};
// A block, kept once read. The first picture does not wait for the blocks that come after this script.
const behind = (name) => !about.served && !["core", "maps"].includes(name);
const block = (name) => (blocks[name] ??= behind(name) ? parsed.then(() => unpack(name)) : unpack(name));

// Where each list in a column of lists begins.
const begins = (lengths) => {
  const places = new Uint32Array(lengths.length + 1);
  for (let n = 0; n < lengths.length; n++) places[n + 1] = places[n] + lengths[n];
  return places;
};
