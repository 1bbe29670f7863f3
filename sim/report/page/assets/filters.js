// SPDX-License-Identifier: BSD-3-Clause
// The reader's filters: rank, group, kind and text. Every part that shows rows asks them.

const KIND_CHOICES = [["", "everything"], ["collective", "collectives"], ["message", "sends and receives"],
  ["unfinished", "calls that failed or never ended"], ["work", "work between calls"],
  ["marks", "faults, restarts, compilations"]];

const FILTERED_FROM = 9;  // with fewer rows of ranks, filters are not worth it

function hasTimeline({ timeline }) { return (timeline?.kinds ?? []).length + (timeline?.span_names ?? []).length > 0; }

function isWorthFiltering(model) { return hasTimeline(model) || model.rows.length >= FILTERED_FROM; }

class Filters {
  constructor(models) {
    this.listeners = [];
    this.rank = null;
    this.group = this.kind = this.text = "";
    this.groups = [...new Set(models.flatMap((model) => (model.timeline?.groups ?? []).map((group) => group.name)))];
    this.names = [...new Set(models.flatMap((model) => (model.timeline?.signatures ?? []).map(([name]) => name)))];
    this.told = el("p", { class: "told", role: "status" });
    this.element = models.some(isWorthFiltering) ? this.form() : null;
  }

  // Calls `listener` when something changes, and shows the text that it may return: "8 of 64 ranks".
  listen(listener) { this.listeners.push(listener); }

  get active() { return this.rank !== null || this.group !== "" || this.kind !== "" || this.text !== ""; }

  changed() {
    const told = this.listeners.map((listener) => listener()).filter(Boolean);
    this.told.textContent = this.active ? `Shown: ${told.join("; ") || "what fits"}` : "";
  }

  showsRank(rank) { return this.rank === null || this.rank(rank); }

  showsText(...texts) {
    const wanted = this.text.toLowerCase();
    return wanted === "" || texts.some((text) => text && text.toLowerCase().includes(wanted));
  }

  // True if calls of this kind pass all filters except the rank and whether the call ended.
  showsKind(kind, groups) {
    if (this.group !== "" && groups[kind.group]?.name !== this.group) return false;
    if (this.kind === "work" || this.kind === "marks") return false;
    if (this.kind === "collective" && !kind.collective) return false;
    if (this.kind === "message" && kind.collective) return false;
    if (this.kind.startsWith("=") && this.kind !== `=${kind.name}`) return false;
    return this.showsText(kind.name, kind.fingerprint, kind.label, groups[kind.group]?.name, ...kind.site);
  }

  get onlyUnfinished() { return this.kind === "unfinished"; }
  showsSpan(name) { return (this.kind === "" || this.kind === "work") && this.group === "" && this.showsText(name); }
  get showsMarks() { return this.kind === "" || this.kind === "marks"; }

  form() {
    const ranks = el("input", { type: "search", id: "filter-rank", placeholder: "0-3, 7", inputmode: "text",
      autocomplete: "off", oninput: () => this.takeRanks(ranks) });
    const text = el("input", { type: "search", id: "filter-text", placeholder: "a call, a label, a line",
      autocomplete: "off", oninput: () => this.take("text", text.value.trim()) });
    const group = this.choice("filter-group", [["", "all"], ...this.groups.map((name) => [name, name])], "group");
    const kind = this.choice("filter-kind",
      [...KIND_CHOICES, ...this.names.map((name) => [`=${name}`, `${name} alone`])], "kind");
    const ofCalls = this.groups.length > 0;
    const reset = el("button", { type: "reset", id: "filter-reset" }, "Show all");
    return el("form", { class: "filters", role: "search", "aria-label": "Filters",
      onsubmit: (event) => event.preventDefault(), onreset: () => this.reset(ranks) },
      el("label", {}, "Ranks", ranks), ofCalls && [el("label", {}, "Group", group), el("label", {}, "Kind", kind)],
      el("label", {}, "Text", text), reset, this.told);
  }

  choice(id, options, field) {
    const select = el("select", { id, onchange: () => this.take(field, select.value) },
      options.map(([value, text]) => el("option", { value }, text)));
    return select;
  }

  take(field, value) {
    this[field] = value;
    this.changed();
  }

  takeRanks(input) {
    const filter = rankFilter(input.value);
    input.setAttribute("aria-invalid", filter === undefined);
    if (filter === undefined) {
      this.told.textContent = `"${input.value}" is no list of ranks, as "0-3, 7" is one`;
      return;
    }
    this.take("rank", filter);
  }

  reset(ranks) {
    Object.assign(this, { rank: null, group: "", kind: "", text: "" });
    ranks.setAttribute("aria-invalid", false);
    this.changed();
  }
}
