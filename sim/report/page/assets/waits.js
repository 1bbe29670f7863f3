// SPDX-License-Identifier: BSD-3-Clause
// Shows which ranks wait for which: a picture of boxes and arrows, and sentences for readers who cannot see it.

const BOX = { width: 210, height: 58, gapX: 90, gapY: 26 };
const BOXES_MOST = 14;
const ASIDE = 28;  // pixels between the boxes and an arrow that passes them
const NARROW = 620;  // pixels; the style sheets have the same limit

// The nodes: ranks that wait alike, or for which others wait: {runs, row, targets}.
function waitNodes(model) {
  const waiting = model.rows.map((row, index) => ({ runs: row.ranks, row, index })).filter(({ row }) => row.waits_for);
  const awaited = new Set(waiting.flatMap(({ row }) => ranksIn(row.waits_for).map((rank) => model.rowOf[rank])));
  const nodes = model.rows.map((row, index) => ({ runs: row.ranks, row, index }))
    .filter(({ row, index }) => row.waits_for || awaited.has(index));
  const place = new Map(nodes.map((node, at) => [node.index, at]));
  for (const node of nodes) {
    const rows = new Set(ranksIn(node.row.waits_for ?? []).map((rank) => model.rowOf[rank]));
    node.targets = [...rows].filter((row) => place.has(row)).map((row) => place.get(row));
  }
  return nodes;
}

// The nodes from which a path of waits leads back to themselves.
function ringOf(nodes) {
  const reaches = (from, to) => {
    const seen = new Set(), open = [...nodes[from].targets];
    while (open.length > 0) {
      const at = open.pop();
      if (at === to) return true;
      if (seen.has(at)) continue;
      seen.add(at);
      open.push(...nodes[at].targets);
    }
    return false;
  };
  return new Set(nodes.map((_, at) => at).filter((at) => reaches(at, at)));
}

// Places each waiting node left of the nodes that it waits for, and the nodes of a ring on a circle. On narrow screens
// all nodes stand one below the other.
function placeNodes(nodes, ring) {
  if (innerWidth < NARROW) return placeBelow(nodes);
  if (ring.size > 1) return placeOnCircle(nodes);
  const depth = nodes.map(() => 0);
  for (let round = 0; round < nodes.length; ++round) {
    nodes.forEach((node, at) => {
      for (const target of node.targets) if (target !== at) depth[target] = Math.max(depth[target], depth[at] + 1);
    });
  }
  const columns = new Map();
  nodes.forEach((node, at) => {
    const column = columns.get(depth[at]) ?? [];
    columns.set(depth[at], column);
    column.push(node);
  });
  placeColumns([...columns.keys()].sort((a, b) => a - b).map((key) => columns.get(key)));
}

// Columns side by side, each centred vertically.
function placeColumns(columns) {
  const longest = Math.max(...columns.map((column) => column.length));
  columns.forEach((column, number) => column.forEach((node, at) => {
    node.x = number * (BOX.width + BOX.gapX);
    node.y = (at + (longest - column.length) / 2) * (BOX.height + BOX.gapY);
  }));
}

// Places each node above the one that it waits for, as far as possible.
function placeBelow(nodes) {
  const order = [];
  const add = (at) => {
    if (order.includes(at)) return;
    order.push(at);
    nodes[at].targets.forEach(add);
  };
  nodes.forEach((_, at) => add(at));
  order.forEach((at, slot) => Object.assign(nodes[at], { x: 0, y: slot * (BOX.height + BOX.gapX / 2), slot }));
}

function placeOnCircle(nodes) {
  const radiusX = Math.max(BOX.width * 0.85, nodes.length * 62), radiusY = Math.max(80, nodes.length * 34);
  nodes.forEach((node, at) => {
    const angle = 2 * Math.PI * at / nodes.length - Math.PI;
    node.x = radiusX * (1 + Math.cos(angle));
    node.y = radiusY * (1 + Math.sin(angle));
  });
}

// The point at which the line from the centre of a box to (x, y) leaves the box.
function edgeOfBox(node, x, y) {
  const middle = { x: node.x + BOX.width / 2, y: node.y + BOX.height / 2 };
  const dx = x - middle.x, dy = y - middle.y;
  const scale = Math.min(BOX.width / 2 / Math.max(Math.abs(dx), 1e-9), BOX.height / 2 / Math.max(Math.abs(dy), 1e-9));
  return { x: middle.x + dx * scale, y: middle.y + dy * scale };
}

// An arrow that passes the boxes between its ends. The arrow to the next box below is straight.
function arrowAside(from, to, inRing) {
  const x = BOX.width, y = from.y + BOX.height / 2, end = to.y + BOX.height / 2;
  return arrowOf(`M${x},${y} Q${x + 2 * ASIDE},${(y + end) / 2} ${x},${end}`, { x, y: end },
    Math.atan2((end - y) / 2, -2 * ASIDE), inRing);
}

function arrow(from, to, inRing) {
  if (from.slot !== undefined && to.slot !== from.slot + 1) return arrowAside(from, to, inRing);
  const a = { x: from.x + BOX.width / 2, y: from.y + BOX.height / 2 };
  const b = { x: to.x + BOX.width / 2, y: to.y + BOX.height / 2 };
  const bend = { x: (a.x + b.x) / 2 + (b.y - a.y) * 0.16, y: (a.y + b.y) / 2 - (b.x - a.x) * 0.16 };
  const middle = inRing && from.slot === undefined ? bend : { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  const start = edgeOfBox(from, middle.x, middle.y), end = edgeOfBox(to, middle.x, middle.y);
  return arrowOf(`M${start.x},${start.y} Q${middle.x},${middle.y} ${end.x},${end.y}`, end,
    Math.atan2(end.y - middle.y, end.x - middle.x), inRing);
}

function arrowOf(path, end, angle, inRing) {
  const side = (turn) => `${end.x - 11 * Math.cos(angle + turn)},${end.y - 11 * Math.sin(angle + turn)}`;
  return [svg("path", { class: inRing ? "edge ring" : "edge", d: path }),
    svg("polygon", { class: inRing ? "head ring" : "head", points: `${end.x},${end.y} ${side(0.42)} ${side(-0.42)}` })];
}

function shortened(text, most) { return text.length > most ? `${text.slice(0, most - 1)}\u2026` : text; }

function boxOf(model, node) {
  const guilty = ranksIn(node.runs).some((rank) => model.guilty.has(rank));
  const text = node.row.doing ? node.row.doing.split("\n")[0] : node.row.state;
  const x = node.x + BOX.width / 2;
  return svg("g", { class: guilty && "guilty" },
    svg("title", {}, `${ranksText(node.runs)}: ${text}`),
    svg("rect", { class: "box", x: node.x, y: node.y, width: BOX.width, height: BOX.height, rx: guilty ? 3 : 12 }),
    svg("text", { x, y: node.y + 24, "text-anchor": "middle", "font-weight": 600 },
      shortened(`${guilty ? "\u25B6 " : ""}${ranksText(node.runs, 3)}`, 28)),
    svg("text", { x, y: node.y + 42, "text-anchor": "middle", class: "small" }, shortened(text, 33)));
}

function picture(model, nodes) {
  const ring = ringOf(nodes);
  placeNodes(nodes, ring);
  const narrow = innerWidth < NARROW, edge = ring.size > 1 || narrow ? 34 : 14;
  const xs = nodes.map((node) => node.x), ys = nodes.map((node) => node.y);
  const left = Math.min(...xs) - (narrow ? 4 : edge), top = Math.min(...ys) - edge;
  const width = Math.max(...xs) + BOX.width + edge - left, height = Math.max(...ys) + BOX.height + edge - top;
  const arrows = nodes.flatMap((node, at) => node.targets.filter((target) => target !== at)
    .map((target) => arrow(node, nodes[target], ring.has(at) && ring.has(target))));
  const image = svg("svg", { viewBox: `${left} ${top} ${width} ${height}`, width, height, role: "img",
    "aria-label": "Who waits for whom; the list below says the same" });
  append(image, [arrows, nodes.map((node) => boxOf(model, node))]);
  image.style.minWidth = `${Math.min(width, 480)}px`;
  return el("div", { class: "graph" }, image);
}

function waitSentence(model, row) {
  const doing = row.doing ? ` (${row.doing.split("\n")[0]})` : "";
  const awaited = awaitedText(row);
  return el("li", {}, `${ranksText(row.ranks)} ${countOf(row.ranks) === 1 ? "waits" : "wait"} for `,
    awaited.startsWith("each other") ? awaited : rankChip(model, row.waits_for), doing);
}

function waitsPart(model) {
  const rows = model.rows.filter((row) => row.waits_for);
  const cycle = model.report.wait_cycle;
  if (rows.length + cycle.length === 0) return null;
  const nodes = waitNodes(model);
  const items = el("ul", { class: "lines" });
  const list = growing(items, (row) => waitSentence(model, row), 20, "waits");
  list.refill(rows);
  const cycleItems = el("ul", { class: "lines" });
  const cycleList = growing(cycleItems, (line) => el("li", {}, linked(model, line)), 20, "waits of the ring");
  cycleList.refill(cycle);
  return part(`waits-${model.index}`, "Who waits for whom",
    nodes.length > 1 && nodes.length <= BOXES_MOST && picture(model, nodes), items, list.button,
    cycle.length > 0 && [el("h3", {}, "The ring of waits"), cycleItems, cycleList.button,
      leftOutText(model.waits_left_out, "wait")]);
}
