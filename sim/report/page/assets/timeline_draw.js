// SPDX-License-Identifier: BSD-3-Clause
// Draws the visible rows. The view (timeline_view.js) holds what the reader chose to see.

const AXIS = 30, PAD = 4;
const STUCK_LEAST = 9;  // the least width in pixels of a call that never ended
const FAILED_EDGE = 3;  // pixels at the end of a call that failed

// Patterns in addition to colours, so that readers who cannot tell the colours apart can tell the bars apart.
function hatch(context, color, crossed) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.strokeStyle = color;
  brush.lineWidth = 1.4;
  brush.beginPath();
  for (const shift of [-6, 0, 6]) {
    brush.moveTo(shift, 6);
    brush.lineTo(shift + 6, 0);
    if (!crossed) continue;
    brush.moveTo(shift, 0);
    brush.lineTo(shift + 6, 6);
  }
  brush.stroke();
  return context.createPattern(tile, "repeat");
}

// The current colours of the style sheet, light or dark.
function paletteOf(element, context) {
  const probe = el("span");
  element.append(probe);
  const color = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const names = ["paper", "stripe", "text", "soft", "line", "link", "bad", "good", "collective", "message", "waiting",
    "stuck", "work", "fault", "on-bar", "bad-ground"];
  const palette = Object.fromEntries(names.map((name) => [name, color(name)]));
  probe.remove();
  palette.waitingHatch = hatch(context, palette.waiting, false);
  palette.stuckHatch = hatch(context, palette.stuck, true);
  return palette;
}

// The time between two marks on the axis: 1, 2 or 5 times a power of ten, and at least about 90 pixels wide.
function axisStep(span, width) {
  const raw = span / Math.max(width / 90, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  return Math.max([1, 2, 5, 10].find((factor) => factor * power >= raw) * power, 1);
}

function drawAxis(view) {
  const { context, palette, gutter, width } = view;
  context.fillStyle = palette.paper;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = palette.soft;
  context.font = view.font(11.5);
  context.textAlign = "left";
  context.textBaseline = "middle";
  const step = axisStep(view.to - view.from, width - gutter);
  context.beginPath();
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = Math.round(view.x(time)) + 0.5;
    if (x < gutter) continue;
    context.moveTo(x, AXIS - 7);
    context.lineTo(x, AXIS);
    if (x < width - 44) context.fillText(timeText(time), x + 4, AXIS / 2 - 1);
  }
  context.moveTo(0, AXIS - 0.5);
  context.lineTo(width, AXIS - 0.5);
  context.strokeStyle = palette.line;
  context.stroke();
}

function drawLabel(view, row, y) {
  const { context, palette, gutter, model } = view;
  const guilty = row.ranks.some((rank) => model.guilty.has(rank));
  context.fillStyle = guilty ? palette["bad-ground"] : row.at % 2 === 1 ? palette.stripe : palette.paper;
  context.fillRect(0, y, gutter, view.row);
  if (guilty) {
    context.fillStyle = palette.bad;
    context.fillRect(0, y, 4, view.row);
  }
  context.fillStyle = guilty ? palette.bad : palette.text;
  context.font = view.font(12.5, guilty ? 700 : 500);
  context.textAlign = "left";
  context.textBaseline = "middle";
  const room = gutter - 14, sign = guilty ? "\u25B6 " : "";
  context.fillText(sign + rowLabel(view, row, room - context.measureText(sign).width), 10, y + view.row / 2, room);
}

// The ranks, or only how many they are if there is no room for their numbers.
function rowLabel(view, row, room) {
  const text = view.narrow ? numbersText(row.runs, 1) : ranksText(row.runs, 2);
  return view.context.measureText(text).width <= room ? text : plural(row.ranks.length, "rank");
}

// Index of the rank's first call that may be visible.
function firstSeen(latest, from, to, time) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (latest[middle] < time) from = middle + 1;
    else to = middle;
  }
  return from;
}

function drawSpans(view, row, y) {
  const { spans, end } = view.model.timeline;
  if (row.rank + 1 >= spans.offsets.length) return;
  const { context, palette } = view;
  for (let i = spans.offsets[row.rank]; i < spans.offsets[row.rank + 1]; ++i) {
    const stop = spans.end[i] === NEVER ? end : spans.end[i];
    if (stop < view.from || spans.begin[i] > view.to) continue;
    const x = Math.max(view.x(spans.begin[i]), view.gutter);
    context.globalAlpha = view.filters.showsSpan(spans.names[spans.name[i]]) ? 1 : 0.15;
    context.fillStyle = palette.work;
    context.fillRect(x, y + view.row - PAD - 3, Math.max(view.x(stop) - x, 1.5), 4);
  }
  context.globalAlpha = 1;
}

function drawCalls(view, row, y) {
  const { calls } = view.model.timeline;
  const last = calls.offsets[row.rank + 1];
  const height = (view.row - 2 * PAD - 4) / calls.lanes[row.rank];
  let covered = -1;  // the pixel up to which visible bars have been drawn
  for (let i = firstSeen(calls.latest, calls.offsets[row.rank], last, view.from); i < last; ++i) {
    if (calls.created[i] > view.to) break;
    const box = callBox(view, i, y, height);
    const shown = view.showsCall(i);
    const coveredUp = box.right <= covered && box.lane === 0;  // it has no pixel of its own
    if (coveredUp && i !== view.chosen && !calls.failed[i]) continue;
    drawCall(view, i, box, shown);
    if (shown && box.lane === 0 && box.right - box.left < 2) covered = box.right;
  }
}

function leastWidth(calls, i) { return calls.ended[i] === NEVER ? STUCK_LEAST : calls.failed[i] ? FAILED_EDGE : 1; }

function callBox(view, i, y, height) {
  const { calls, end } = view.model.timeline;
  const stuck = calls.ended[i] === NEVER;
  const left = Math.max(view.x(calls.created[i]), view.gutter - 4);
  const right = Math.min(Math.max(view.x(stuck ? end : calls.ended[i]), left + leastWidth(calls, i)),
    view.width + 4);
  const middle = calls.started[i] === NEVER ? right : Math.max(view.x(calls.started[i]), left);
  return { left, middle, right, top: y + PAD + calls.lane[i] * height, height, lane: calls.lane[i] };
}

function drawCall(view, i, box, shown) {
  const { context, palette, model: { timeline: { calls, kinds } } } = view;
  const kind = kinds[calls.kind[i]], stuck = howEnded(calls, i) !== ENDED_WELL;
  context.globalAlpha = shown ? 1 : 0.15;
  const middle = Math.min(box.middle, box.right);
  if (middle > box.left) {
    context.fillStyle = stuck ? palette.stuckHatch : palette.waitingHatch;
    context.fillRect(box.left, box.top, middle - box.left, box.height);
    context.strokeStyle = stuck ? palette.stuck : palette.waiting;
    context.strokeRect(box.left + 0.5, box.top + 0.5, Math.max(middle - box.left - 1, 0.5), box.height - 1);
  }
  if (box.right > middle || !stuck) {
    context.fillStyle = stuck ? palette.stuck : kind.collective ? palette.collective : palette.message;
    context.beginPath();
    const round = kind.collective ? 1 : box.height / 2;
    context.roundRect(middle, box.top, Math.max(box.right - middle, 1), box.height, round);
    context.fill();
  }
  if (calls.failed[i] && view.x(calls.ended[i]) <= view.width) drawFailure(view, box);
  nameCall(view, i, kind, box, middle);
  context.globalAlpha = 1;
  if (i === view.chosen || view.isMet(i)) outline(view, box, i === view.chosen);
}

// Draws a thick edge at the end of a failed call, with a cross if there is room.
function drawFailure(view, box) {
  const { context, palette } = view;
  context.fillStyle = palette.stuck;
  context.fillRect(box.right - FAILED_EDGE, box.top, FAILED_EDGE, box.height);
  if (box.right - box.left < 4 * FAILED_EDGE) return;
  context.font = view.font(12, 700);
  context.textAlign = "right";
  context.textBaseline = "middle";
  haloed(view, "\u2715", box.right - FAILED_EDGE - 2, box.top + box.height / 2, palette.stuck);
  context.textAlign = "left";
}

// Draws text over anything: a rim in the paper's colour keeps its contrast.
function haloed(view, text, x, y, color) {
  const { context, palette } = view;
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = palette.paper;
  context.strokeText(text, x, y);
  context.lineWidth = 1;
  context.fillStyle = color;
  context.fillText(text, x, y);
}

function nameCall(view, i, kind, box, middle) {
  const { context, palette, model: { timeline: { calls } } } = view;
  const wide = box.right - middle > middle - box.left;
  const left = Math.max(wide ? middle : box.left, view.gutter), right = wide ? box.right : middle;
  if (right - left < 34 || box.height < 11) return;
  context.save();
  context.beginPath();
  context.rect(left, box.top, right - left - 3, box.height);
  context.clip();
  context.font = view.font(10.5, 600);
  context.textBaseline = "middle";
  const title = callTitle(kind, calls.number[i]);
  const text = context.measureText(title).width < right - left - 10 ? title : `#${calls.number[i]}`;
  if (!wide) {
    context.fillStyle = palette.paper;
    const width = Math.min(context.measureText(text).width + 6, right - left - 6);
    context.fillRect(left + 3, box.top + box.height / 2 - 8, width, 16);
  }
  context.fillStyle = wide ? palette["on-bar"] : palette.text;
  context.fillText(text, left + 6, box.top + box.height / 2 + 0.5);
  context.restore();
}

function outline(view, box, chosen) {
  const { context, palette } = view;
  context.strokeStyle = palette.link;
  context.lineWidth = chosen ? 3 : 1.5;
  context.strokeRect(box.left - 1, box.top - 1, box.right - box.left + 2, box.height + 2);
  context.lineWidth = 1;
}

const GLYPHS = { returned: "\u25A0", failed: "\u2715", crashed: "\u2715", blocked: "", stopped: "\u25CB" };

function marksOfRank(model, rank) {
  return [...model.compileMarks.get(rank) ?? [], ...model.marks.get(rank) ?? []];
}

function glyphOf(mark) { return mark.compile ? "\u25C6" : mark.restart ? "\u25B2" : "\u25BC"; }
function colourOf(mark) { return mark.compile ? "text" : mark.restart ? "good" : "fault"; }

// Marks how and when the rank ended, its faults, and where it restarted.
function drawMarks(view, row, y) {
  const { context, palette, model } = view;
  context.font = view.font(13, 700);
  context.textAlign = "center";
  context.textBaseline = "middle";
  const put = (text, time, color) => {
    if (time < view.from || time > view.to) return;
    haloed(view, text, Math.max(view.x(time), view.gutter + 6), y + view.row / 2, color);
  };
  context.globalAlpha = view.filters.showsMarks ? 1 : 0.2;
  const story = model.rows[model.rowOf[row.rank]];
  if (story && !Number.isNaN(model.timeOf[row.rank])) {
    const bad = story.state === "failed" || story.state === "crashed";
    put(GLYPHS[story.state] ?? "", model.timeOf[row.rank], bad ? palette.stuck : palette.soft);
  }
  for (const mark of marksOfRank(model, row.rank)) put(glyphOf(mark), mark.at, palette[colourOf(mark)]);
  context.globalAlpha = 1;
}

function drawRow(view, row, y) {
  const { context, palette, gutter, width } = view;
  if (row.at % 2 === 1) {
    context.fillStyle = palette.stripe;
    context.fillRect(gutter, y, width - gutter, view.row);
  }
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS, width - gutter, view.height - AXIS);
  context.clip();
  drawSpans(view, row, y);
  drawCalls(view, row, y);
  drawMarks(view, row, y);
  context.restore();
  drawLabel(view, row, y);
}

function drawTimeline(view) {
  const { context, palette, width, height, rows } = view;
  context.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  context.fillStyle = palette.paper;
  context.fillRect(0, 0, width, height);
  const first = Math.max(Math.floor(view.scrolled / view.row), 0);
  const last = Math.min(Math.ceil((view.scrolled + height - AXIS) / view.row), rows.length);
  for (let at = first; at < last; ++at) drawRow(view, rows[at], AXIS + at * view.row - view.scrolled);
  drawAxis(view);
}
