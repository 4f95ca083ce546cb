// Copies exhibits: a picture as PNG, the numbers as LaTeX or CSV. If the browser gives no
// access to the clipboard, they are saved as files.
(() => {
  const texts = JSON.parse(document.getElementById("exhibits").textContent);
  const SCALE = 3;  // pixels for each unit of a picture
  const canvasOf = (width, height) => {
    const canvas = make("canvas"), pen = canvas.getContext("2d");
    Object.assign(canvas, { width: Math.ceil(width * SCALE), height: Math.ceil(height * SCALE) });
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.scale(SCALE, SCALE);
    return [canvas, pen, () => new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); })];
  };
  // The picture with its colours written in, which otherwise stand in the page's style sheet.
  const drawn = async (picture) => {
    const { width, height } = picture.viewBox.baseVal, own = picture.cloneNode(true), root = getComputedStyle(document.documentElement);
    own.setAttribute("width", width);
    own.setAttribute("height", height);
    const text = new XMLSerializer().serializeToString(own)
      .replace(/var\((--[a-z]+)\)/g, (_, name) => root.getPropertyValue(name).trim())
      .replaceAll("currentColor", root.getPropertyValue("--ink").trim());
    const image = new Image(), [, pen, done] = canvasOf(width, height);
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    pen.drawImage(image, 0, 0, width, height);
    return done();
  };
  // A table, each word drawn where it stands in the page.
  const tabled = (table) => {
    const box = table.getBoundingClientRect(), [, pen, done] = canvasOf(box.width, box.height), range = document.createRange();
    const words = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    pen.textBaseline = "middle";
    while (words.nextNode()) {
      const node = words.currentNode, style = getComputedStyle(node.parentElement);
      pen.font = style.font;
      pen.fillStyle = style.color;
      for (const word of node.data.matchAll(/\S+/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const at = range.getBoundingClientRect();
        pen.fillText(word[0], at.left - box.left, at.top - box.top + at.height / 2);
      }
    }
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--line");
    for (const row of table.rows) pen.fillRect(0, row.getBoundingClientRect().bottom - box.top - 1, box.width, 1);
    return done();
  };
  const KINDS = {
    png: { type: "image/png", end: "png", make: (key, place) => (place.querySelector("svg") ? drawn(place.querySelector("svg")) : tabled(place.querySelector("table"))) },
    latex: { type: "text/plain", end: "tex", make: async (key) => new Blob([texts[key].latex], { type: "text/plain" }) },
    csv: { type: "text/plain", end: "csv", make: async (key) => new Blob([texts[key].csv], { type: "text/plain" }) },
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const place = button.closest("[data-exhibit]"), key = place.dataset.exhibit, said = place.querySelector("[role=status]");
    const { type, end, make } = KINDS[button.dataset.copy];
    const blob = await make(key, button.closest(".exhibit"));
    try {
      await navigator.clipboard.write([new ClipboardItem({ [type]: blob })]);
      said.textContent = "Copied.";
    } catch {
      save(`${key}.${end}`, type, [blob]);
      said.textContent = "Saved as a file: this browser denies the clipboard to pages opened from files.";
    }
    setTimeout(() => { said.textContent = ""; }, 4000);
  });
})();
