// Building the page: text is only ever set as text, never as HTML.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// A name, or a place: literal, and kept from turning round the text beside it.
function nameElement(text) {
  return element("code", {}, element("bdi", {}, text));
}

// Roles are said, because a narrow screen lays tables out as blocks, and would take them away.
function row(cells, heads, { first = "cell", numbers = [] } = {}) {
  const made = cells.map((cell, at) => {
    const head = first === "rowheader" && at === 0;
    const attributes = { role: head ? "rowheader" : "cell", "data-label": heads[at], scope: head ? "row" : null };
    if (numbers.includes(at)) attributes.class = "number";
    return element(head ? "th" : "td", attributes, ...(Array.isArray(cell) ? cell : [cell]));
  });
  return element("tr", { role: "row" }, ...made);
}

function headRow(heads) {
  return element("tr", { role: "row" }, ...heads.map((head) => element("th", { scope: "col", role: "columnheader" }, head)));
}

function tableElement(caption, heads, rows) {
  return element(
    "table",
    { role: "table" },
    element("caption", {}, ...caption),
    element("thead", { role: "rowgroup" }, headRow(heads)),
    element("tbody", { role: "rowgroup" }, ...rows),
  );
}

// An amount, which never breaks between its number and its unit.
function amountElement(key, value) {
  return element("span", { class: "amount" }, amount(key, value));
}

function option(value, text) {
  return element("option", { value }, text);
}

const byId = (id) => document.getElementById(id);
const plural = (count, word, words = word + "s") => count.toLocaleString("en-US") + " " + (count === 1 ? word : words);
