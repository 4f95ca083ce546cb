// Two names side by side: what the profiles of each say, attribute by attribute.
const data = JSON.parse(by("data").textContent);
const sides = ["left", "right"].map(by);
const heads = ["first", "second"].map(by);
const rows = by("rows");
const byName = new Map();
for (const profile of data.profiles) {
  if (!byName.has(profile.name)) byName.set(profile.name, []);
  byName.get(profile.name).push(profile);
}
const groupOf = (name) => byName.get(name)[0].group;
const groups = new Map();
for (const name of byName.keys()) {
  if (!groups.has(groupOf(name))) groups.set(groupOf(name), []);
  groups.get(groupOf(name)).push(name);
}
for (const side of sides) {
  for (const [group, names] of groups) {
    const part = make("optgroup");
    part.label = group;
    part.append(...names.map((name) => option(name, name)));
    side.append(part);
  }
}
const counted = (name, n) => {
  const found = new Map();
  for (const profile of byName.get(name)) {
    for (const value of profile.values[n]) {
      const key = value.toLowerCase();
      found.set(key, { text: value, count: (found.get(key)?.count ?? 0) + 1 });
    }
  }
  return found;
};
const cell = (own, other) => {
  const td = make("td");
  const list = make("ul");
  for (const [key, { text, count }] of [...own].sort((a, b) => b[1].count - a[1].count)) {
    const item = make("li", count > 1 ? `${text} (${count})` : text);
    if (!other.has(key)) item.className = "only";
    list.append(item);
  }
  td.append(list);
  return td;
};
const show = () => {
  const names = sides.map((side) => side.value);
  names.forEach((name, n) => {
    heads[n].textContent = `${name} (${groupOf(name)}), ${byName.get(name).length} profiles`;
  });
  rows.replaceChildren(
    ...data.attributes.map((attribute, n) => {
      const tr = make("tr");
      const head = make("th", attribute.replaceAll("_", " "));
      head.scope = "row";
      const [a, b] = names.map((name) => counted(name, n));
      tr.append(head, cell(a, b), cell(b, a));
      return tr;
    }),
  );
};
data.begin.forEach((name, n) => { sides[n].value = name; });
for (const side of sides) side.addEventListener("change", show);
by("swap").addEventListener("click", () => {
  [sides[0].value, sides[1].value] = [sides[1].value, sides[0].value];
  show();
});
by("next").addEventListener("click", () => {
  const all = [...groups.values()];
  for (const side of sides) {
    const at = all.findIndex((names) => names.includes(side.value));
    side.value = all[(at + 1) % all.length][0];
  }
  show();
});
show();
