// SPDX-License-Identifier: BSD-3-Clause
// Mouse, touch and keyboard input for a timeline.

const KEYS_TEXT = "Drag to move, pinch or turn the wheel with Ctrl held to zoom, choose a call to read of " +
  "it. By keys: arrows left and right go from call to call of a rank, up and down from rank to rank; plus and minus " +
  "zoom, comma and period move along the time, 0 shows all of it, Escape forgets the chosen call.";

class TimelineInput {
  constructor(view) {
    this.view = view;
    this.pointers = new Map();
    const { canvas } = view;
    const on = (name, handle, options) => canvas.addEventListener(name, (event) => handle.call(this, event), options);
    on("pointerdown", this.press);
    on("pointermove", this.move);
    on("pointerup", this.release);
    on("pointercancel", this.release);
    on("pointerleave", () => { view.tip.hidden = true; });
    on("wheel", this.wheel, { passive: false });
    on("dblclick", (event) => view.zoom(ZOOM_STEP * ZOOM_STEP, view.timeAt(this.place(event).x)));
    on("keydown", this.key);
  }

  place(event) {
    const box = this.view.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  press(event) {
    this.view.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    this.moved = this.pointers.size > 1;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId), now = this.place(event);
    if (!before) return this.hover(event, now);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, now);
    if (others.length > 0) return this.pinch(before, now, others[0]);
    if (Math.abs(now.x - before.x) < 3 && !this.moved) {
      this.pointers.set(event.pointerId, before);
      return undefined;
    }
    this.moved = true;
    this.view.canvas.classList.add("dragged");
    return this.view.pan((before.x - now.x) / (this.view.width - this.view.gutter));
  }

  // Keeps both fingers on the times on which they were placed.
  pinch(before, now, other) {
    const least = 12;
    const apart = Math.max(Math.abs(before.x - other.x), least), wider = Math.max(Math.abs(now.x - other.x), least);
    this.moved = true;
    this.view.zoom(wider / apart, this.view.timeAt(other.x));
  }

  release(event) {
    const was = this.pointers.delete(event.pointerId);
    this.view.canvas.classList.remove("dragged");
    if (!was || this.moved || event.type === "pointercancel") return;
    const { x, y } = this.place(event);
    this.view.choose(this.view.callAt(x, y, event.pointerType === "touch" ? 14 : 4));
  }

  hover(event, { x, y }) {
    const { view } = this;
    const text = this.tipText(x, y);
    view.tip.hidden = text === "";
    if (text === "") return;
    view.tip.textContent = text;
    const left = Math.min(event.clientX + 14, innerWidth - view.tip.offsetWidth - 8);
    view.tip.style.left = `${Math.max(left, 4)}px`;
    const below = event.clientY + 18, tall = view.tip.offsetHeight;
    view.tip.style.top = `${below + tall > innerHeight ? event.clientY - tall - 10 : below}px`;
  }

  tipText(x, y) {
    const { view } = this;
    const { timeline } = view.model;
    const row = y < AXIS ? undefined : view.rowAt(y);
    if (!row) return "";
    if (x < view.gutter) return rowText(view.model, row);
    const mark = marksOfRank(view.model, row.rank).find(({ at }) => Math.abs(view.x(at) - x) < 8);
    if (mark) return mark.text;
    const call = view.callAt(x, y);
    if (call >= 0) return tipOfCall(timeline, call, row);
    return spanAt(timeline, row.rank, view.timeAt(x)) ?? "";
  }

  wheel(event) {
    const { view } = this;
    if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(-event.deltaY / 240), view.timeAt(this.place(event).x));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.pan((event.shiftKey ? event.deltaY + event.deltaX : event.deltaX) / view.width);
    } else return;
    event.preventDefault();
  }

  key(event) {
    const { view } = this;
    const actions = {
      "+": () => view.zoom(ZOOM_STEP, this.middle()), "=": () => view.zoom(ZOOM_STEP, this.middle()),
      "-": () => view.zoom(1 / ZOOM_STEP, this.middle()), "0": () => view.fit(),
      ",": () => view.pan(-0.25), ".": () => view.pan(0.25),
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      ArrowUp: () => this.stepRow(-1), ArrowDown: () => this.stepRow(1),
      Escape: () => view.choose(-1),
    };
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
  }

  // The time around which the keys zoom: the chosen call, or the middle.
  middle() {
    const { view } = this;
    return view.chosen < 0 ? undefined : view.model.timeline.calls.created[view.chosen];
  }

  step(by) {
    const { view } = this;
    const { offsets } = view.model.timeline.calls;
    if (view.chosen < 0) return this.chooseIn(view.rows[0]);
    const rank = view.rankOf(view.chosen);
    for (let i = view.chosen + by; i >= offsets[rank] && i < offsets[rank + 1]; i += by) {
      if (view.showsCall(i)) return view.choose(i);
    }
    return undefined;
  }

  stepRow(by) {
    const { view } = this;
    if (view.chosen < 0) return this.chooseIn(view.rows[0]);
    const rank = view.rankOf(view.chosen);
    const at = view.rows.findIndex((row) => row.rank === rank) + by;
    return this.chooseIn(view.rows[at], view.model.timeline.calls.created[view.chosen]);
  }

  // Chooses the row's call that was made nearest to `time`.
  chooseIn(row, time = this.view.from) {
    if (!row) return;
    const { created, offsets } = this.view.model.timeline.calls;
    let best = -1;
    for (let i = offsets[row.rank]; i < offsets[row.rank + 1]; ++i) {
      if (!this.view.showsCall(i)) continue;
      if (best < 0 || Math.abs(created[i] - time) < Math.abs(created[best] - time)) best = i;
    }
    if (best >= 0) this.view.choose(best);
  }
}

function rowText(model, row) {
  const story = model.rows[model.rowOf[row.rank]];
  if (!story) return ranksText(row.runs);
  return `${ranksText(row.runs)}: ${story.state}${story.doing ? `\n${story.doing.split("\n")[0]}` : ""}`;
}

function tipOfCall(timeline, call, row) {
  const { calls, kinds, groups } = timeline;
  const kind = kinds[calls.kind[call]];
  const took = tookText(calls, call), well = howEnded(calls, call) === ENDED_WELL;
  const how = calls.started[call] === NEVER && calls.ended[call] === NEVER ? "never began: not everybody came"
    : `waited ${waitedText(calls, call)}, ${well ? `took ${took}` : took}`;
  return `${callTitle(kind, calls.number[call])} on "${groups[kind.group]?.name}", rank ${row.rank}\n` +
    `at ${timeText(calls.created[call])}: ${how}`;
}

function spanAt(timeline, rank, time) {
  const { spans, end } = timeline;
  if (rank + 1 >= spans.offsets.length) return undefined;
  for (let i = spans.offsets[rank]; i < spans.offsets[rank + 1]; ++i) {
    const stop = spans.end[i] === NEVER ? end : spans.end[i];
    if (spans.begin[i] > time || time > stop) continue;
    return `${spans.names[spans.name[i]]}, ${timeText(stop - spans.begin[i])}`;
  }
  return undefined;
}
