// SPDX-License-Identifier: BSD-3-Clause
// Makes elements. Texts of programs reach the page only as text nodes and attributes, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

// Escapes control characters, and characters that reverse the text after them: "\x1b", "\u202e".
function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16)}`;
  });
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

// Makes an element: el("a", {href: "#top"}, "to the top"). Children are texts, elements, and lists of them.
function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  set(element, properties);
  return append(element, children);
}

function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, properties);
  return append(element, children);
}

// A part of the page with its heading. `id` makes it an entry in the list of contents.
function part(id, title, ...children) {
  const heading = `${id}-title`;
  return el("section", { id, "aria-labelledby": heading, "data-title": title },
    el("h2", { id: heading }, title), children);
}

// Makes a row of cells. A cell is a text, an element, a list of them, or {class, content}. `heads` name the columns. On
// narrow screens, each cell shows its column's name before it.
function tableRow(heads, cells, properties = {}) {
  return el("tr", properties, cells.map((cell, column) => {
    const own = cell && typeof cell === "object" && "content" in cell ? cell : { content: cell };
    const head = column === 0;
    return el(head ? "th" : "td", { class: own.class, scope: head && "row", "data-title": heads[column] || false },
      own.content);
  }));
}

function table(heads, rows, caption) {
  return el("table", { class: "stack" }, caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows));
}

// A list that grows when the reader presses a button: `make(item)` returns an item's elements, `size` items appear at a
// time. The returned element has refill(items).
function growing(container, make, size, what) {
  const button = el("button", { type: "button", class: "more", onclick: () => grow() });
  let items = [], shown = 0;
  function grow() {
    const next = items.slice(shown, shown + size);
    container.append(...next.map(make));
    shown += next.length;
    const left = items.length - shown;
    button.hidden = left === 0;
    button.textContent = `Show ${Math.min(left, size)} more of ${items.length} ${what}`;
  }
  function refill(all) {
    items = all;
    shown = 0;
    container.replaceChildren();
    grow();
  }
  return { button, refill };
}
