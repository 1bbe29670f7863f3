// SPDX-License-Identifier: BSD-3-Clause
// The state of the timeline: the visible ranks and times, the chosen call, and the texts about it.

const ZOOM_STEP = 1.6;
const ROW = 26, TALL_ROW = 38, TALL_MOST = 12;  // rows are tall if there are at most TALL_MOST of them

class TimelineView {
  constructor(model, filters) {
    Object.assign(this, { model, filters, chosen: -1, scrolled: 0, from: 0, to: 1 });
    this.folded = model.timeline.ranks >= FOLD_FROM;
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-describedby": `keys-${model.index}`,
      "aria-label": "Timeline of ranks; the table below says the same" });
    this.context = this.canvas.getContext("2d");
    this.roll = el("div", { class: "roll", onscroll: () => this.scroll() }, this.canvas, this.space = el("div"));
    this.tip = el("div", { class: "tip", hidden: true });
    this.facts = el("dl", { class: "chosen", role: "status" });
    this.range = el("span", { class: "range", role: "status" });
    this.fit();
    this.refold();
    filters.listen(() => this.refold());
    new TimelineInput(this);
  }

  // Must be called once the elements are on the page.
  shown() {
    new ResizeObserver(() => this.resize()).observe(this.roll);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolor());
    this.recolor();
  }

  recolor() {
    this.palette = paletteOf(this.roll, this.context);
    this.resize();
  }

  refold() {
    this.rows = timelineRows(this.model, this.folded, (rank) => this.filters.showsRank(rank));
    this.rows.forEach((row, at) => { row.at = at; });
    const { kinds, groups } = this.model.timeline;
    this.kindShown = kinds.map((kind) => this.filters.showsKind(kind, groups));
    this.scrolled = Math.min(this.scrolled, this.roll.scrollTop);
    this.resize();
    const shown = this.rows.reduce((sum, row) => sum + row.ranks.length, 0);
    return `${shown} of ${plural(this.model.timeline.ranks, "rank")}`;
  }

  resize() {
    const width = this.roll.clientWidth;
    if (!this.palette || width === 0) return;
    this.narrow = width < 560;
    this.gutter = this.narrow ? 64 : 132;
    this.row = this.rows.length <= TALL_MOST ? TALL_ROW : ROW;
    const content = AXIS + Math.max(this.rows.length, 1) * this.row;
    this.width = width;
    this.height = Math.min(content, parseFloat(getComputedStyle(this.roll).maxHeight) || 720);
    this.scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * this.scale);
    this.canvas.height = Math.round(this.height * this.scale);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.space.style.height = `${Math.max(content - this.height, 0)}px`;
    this.draw();
  }

  scroll() {
    this.scrolled = this.roll.scrollTop;
    this.draw();
  }

  // Draws at most once in each frame.
  draw() {
    if (this.awaited || !this.palette) return;
    this.awaited = requestAnimationFrame(() => {
      this.awaited = 0;
      drawTimeline(this);
      this.tell();
    });
  }

  tell() {
    const text = `${timeText(Math.max(this.from, 0))} to ${timeText(this.to)}`;
    if (this.range.textContent !== text) this.range.textContent = text;
    this.canvas.dataset.rows = this.rows.length;
    this.canvas.dataset.from = this.from;
    this.canvas.dataset.to = this.to;
  }

  font(size, weight = 400) { return `${weight} ${size}px system-ui, sans-serif`; }
  x(time) { return this.gutter + (time - this.from) / (this.to - this.from) * (this.width - this.gutter - 12); }
  timeAt(x) { return this.from + (x - this.gutter) / (this.width - this.gutter - 12) * (this.to - this.from); }

  showsCall(i) {
    const { calls } = this.model.timeline;
    return this.kindShown[calls.kind[i]] && (!this.filters.onlyUnfinished || howEnded(calls, i) !== ENDED_WELL);
  }

  // Shows the time that has events, and some room after it.
  fit() {
    const { calls, end } = this.model.timeline;
    let first = end, last = 0;
    for (const time of calls.created) {
      first = Math.min(first, time);
      last = Math.max(last, time);
    }
    calls.ended.forEach((time, i) => { if (howEnded(calls, i) === ENDED_WELL) last = Math.max(last, time); });
    const from = calls.created.length > 0 && first > end * 0.5 ? first : 0;
    // A standstill lasts until some timeout makes calls fail, long after the last real event.
    const to = calls.created.length > 0 && last < end * 0.5 ? last + (last - from) * 0.15 : end;
    this.show(from, Math.max(to + (to - from) * 0.02, from + 1));
  }

  show(from, to) {
    const most = Math.max(this.model.timeline.end * 1.1, 10);
    const span = Math.min(Math.max(to - from, 4), most);
    this.from = Math.min(Math.max(from, -0.02 * most), most - span);
    this.to = this.from + span;
    this.draw();
  }

  zoom(factor, time = (this.from + this.to) / 2) {
    this.show(time - (time - this.from) / factor, time + (this.to - time) / factor);
  }

  pan(part) {
    const shift = (this.to - this.from) * part;
    this.show(this.from + shift, this.to + shift);
  }

  rowAt(y) { return this.rows[Math.floor((y - AXIS + this.scrolled) / this.row)]; }

  // The call at a place on the canvas; -1: none. A call nearby is enough, for fingers.
  callAt(x, y, slack = 3) {
    const row = y < AXIS ? undefined : this.rowAt(y);
    if (!row || x < this.gutter) return -1;
    const { calls } = this.model.timeline;
    const top = AXIS + row.at * this.row - this.scrolled, height = (this.row - 2 * PAD - 4) / calls.lanes[row.rank];
    let best = -1, nearest = slack;
    for (let i = firstSeen(calls.latest, calls.offsets[row.rank], calls.offsets[row.rank + 1], this.timeAt(x - slack));
      i < calls.offsets[row.rank + 1] && calls.created[i] <= this.timeAt(x + slack); ++i) {
      const box = callBox(this, i, top, height);
      const away = Math.max(box.left - x, x - box.right, 0) + (y < box.top || y > box.top + box.height ? 1 : 0);
      if (away <= nearest) [best, nearest] = [i, away];
    }
    return best;
  }

  rankOf(call) {
    const { offsets } = this.model.timeline.calls;
    let low = 0, high = offsets.length - 1;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (offsets[middle] <= call) low = middle;
      else high = middle;
    }
    while (offsets[low + 1] <= call) ++low;
    return low;
  }

  // True if the call belongs to the same collective as the chosen call.
  isMet(i) {
    if (this.chosen < 0) return false;
    const { calls, kinds } = this.model.timeline;
    const own = kinds[calls.kind[this.chosen]], other = kinds[calls.kind[i]];
    const together = own.collective && other.collective && own.group === other.group;
    return together && calls.number[i] === calls.number[this.chosen];
  }

  choose(call) {
    this.chosen = call;
    this.facts.replaceChildren(...(call < 0 ? [] : callFacts(this.model, call, this.rankOf(call))));
    if (call >= 0) this.bringIntoView(call);
    this.draw();
  }

  bringIntoView(call) {
    const { calls, end } = this.model.timeline;
    const begin = calls.created[call], stop = calls.ended[call] === NEVER ? end : calls.ended[call];
    const span = this.to - this.from;
    if (stop < this.from || begin > this.to) this.show((begin + stop - span) / 2, (begin + stop + span) / 2);
    const rank = this.rankOf(call);
    const row = this.rows.find((each) => each.rank === rank);
    if (!row) return;
    const top = row.at * this.row;
    if (top < this.scrolled) this.roll.scrollTop = top;
    if (top + this.row > this.scrolled + this.height - AXIS) this.roll.scrollTop = top + this.row - this.height + AXIS;
  }
}

// The rank that came last to the collective, as far as the page knows: [rank, time].
function lastToArrive(model, call) {
  const { calls, kinds, groups } = model.timeline;
  const kind = kinds[calls.kind[call]];
  let last = null;
  for (const rank of ranksIn(groups[kind.group].ranks)) {
    for (let i = calls.offsets[rank]; i < calls.offsets[rank + 1]; ++i) {
      const other = kinds[calls.kind[i]];
      if (calls.number[i] !== calls.number[call] || !other.collective || other.group !== kind.group) continue;
      if (!last || calls.created[i] > last[1]) last = [rank, calls.created[i]];
    }
  }
  return last;
}

// A receive may be from any rank, and a trace.json does not say to whom a message went.
function peerText(kind, rank) {
  if (kind.collective) return "";
  if (kind.peer !== null) return `rank ${rank + kind.peer}, tag ${kind.tag}`;
  return kind.type === "receive" ? "any rank, or not known" : "not known";
}

function callFacts(model, call, rank) {
  const { calls, kinds, groups, end } = model.timeline;
  const kind = kinds[calls.kind[call]];
  const started = calls.started[call], created = calls.created[call];
  const open = started === NEVER && calls.ended[call] === NEVER;
  const entries = [["rank", `${rank}`], ["call", callTitle(kind, calls.number[call])],
    ["does", kind.fingerprint], ["group", groups[kind.group]?.name ?? ""],
    ["peer", peerText(kind, rank)],
    ["called at", timeText(created)],
    ["waited", open ? `${timeText(end - created)}, until the end: not everybody came` : waitedText(calls, call)],
    ["took", open ? "" : tookText(calls, call)],
    ["where", kind.site.map((line) => el("div", {}, el("code", {}, linked(model, line))))]];
  if (kind.collective && started !== NEVER) {
    const last = lastToArrive(model, call);
    if (last) entries.push(["last to come", `rank ${last[0]}, at ${timeText(last[1])}`]);
  }
  return entries.filter(([, value]) => value.length > 0)
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}
