// SPDX-License-Identifier: BSD-3-Clause
// The timeline with its buttons and legend, and the same content as a table.

const CALL_HEADS = ["rank", "call", "group", "called at", "waited", "took", "where"];

function legend() {
  const bar = (name, text) => el("li", {}, el("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text);
  const glyph = (name, sign, text) => el("li", {},
    el("span", { class: `glyph ${name}`, "aria-hidden": "true" }, sign), text);
  return el("ul", { class: "legend", "aria-label": "Legend" }, bar("waiting", "waits for others"),
    bar("collective", "collective"), bar("message", "send or receive"), bar("stuck", "never ended"),
    bar("broken", "failed call"), bar("work", "work between calls"), glyph("fault", "\u25BC", "fault"),
    glyph("restart", "\u25B2", "began again"),
    glyph("", "\u25C6", "compiles"), glyph("failed", "\u2715", "rank failed"),
    glyph("", "\u25A0", "returned"), glyph("", "\u25CB", "still running"));
}

function tools(view) {
  const button = (text, title, act) => el("button", { type: "button", title, "aria-label": title, onclick: act }, text);
  const fold = el("input", { type: "checkbox", id: `fold-${view.model.index}`, onchange: () => {
    view.folded = fold.checked;
    view.refold();
  } });
  fold.checked = view.folded;
  return el("div", { class: "tools" },
    button("+", "Zoom in", () => view.zoom(ZOOM_STEP)), button("\u2212", "Zoom out", () => view.zoom(1 / ZOOM_STEP)),
    button("\u25C0", "Earlier", () => view.pan(-0.25)), button("\u25B6", "Later", () => view.pan(0.25)),
    button("All", "All of the time", () => view.fit()),
    el("label", {}, fold, "Ranks that did the same as one row"), view.range);
}

function callRow(model, call, rank) {
  const { calls, kinds, groups } = model.timeline;
  const kind = kinds[calls.kind[call]];
  return tableRow(CALL_HEADS, [`${rank}`, callTitle(kind, calls.number[call]), groups[kind.group]?.name ?? "",
    { class: "number", content: timeText(calls.created[call]) },
    { class: "number", content: waitedText(calls, call) }, { class: "number", content: tookText(calls, call) },
    kind.site.length > 0 ? el("code", {}, linked(model, kind.site[0])) : ""]);
}

// Fills the table only when the reader opens it, because it may have a million rows.
function callTable(view) {
  const { model, filters } = view;
  const body = el("tbody"), whole = table(CALL_HEADS, [], "Calls, rank by rank; the filters hold here, too");
  whole.querySelector("tbody").replaceWith(body);
  const list = growing(body, ([call, rank]) => callRow(model, call, rank), ROWS_AT_ONCE, "calls");
  const details = el("details", { class: "calls", ontoggle: () => refill() }, el("summary", {}, "The same as a table"),
    el("div", { class: "scroll" }, whole), list.button);
  function refill() {
    if (!details.open) return;
    const { calls } = model.timeline, wanted = [];
    for (let rank = 0; rank < model.timeline.ranks; ++rank) {
      if (!filters.showsRank(rank)) continue;
      for (let i = calls.offsets[rank]; i < calls.offsets[rank + 1]; ++i) if (view.showsCall(i)) wanted.push([i, rank]);
    }
    list.refill(wanted);
  }
  filters.listen(refill);
  return details;
}

function leftOut({ leftOut: calls, spansLeftOut: spans }) {
  if (calls + spans === 0) return null;
  const what = [[calls, "earlier calls"], [spans, "earlier pieces of work"]].filter(([count]) => count > 0)
    .map(([count, name]) => `${count.toLocaleString("en")} ${name}`);
  return el("p", { class: "quiet" }, `The latest of each rank are here. ${what.join(" and ")} are left out.`);
}

// `title` names the run if the page has several.
function timelinePart(model, filters, title) {
  if (!model.timeline || model.timeline.calls.kind.length + model.timeline.spans.name.length === 0) return null;
  const view = new TimelineView(model, filters);
  const element = part(`timeline-${model.index}`, title,
    leftOut(model.timeline),
    tools(view), view.roll, legend(), view.facts, view.tip,
    el("details", {}, el("summary", {}, "Keys and fingers"), el("p", { id: `keys-${model.index}` }, KEYS_TEXT)),
    callTable(view));
  element.view = view;
  return element;
}
