// SPDX-License-Identifier: BSD-3-Clause
// The page's tables about a run, by rank and by place.

// Extends a run of the data with tables for frequent look-ups: rows of ranks, each rank's row, source lines.
function modelOf(run, index) {
  const model = { ...run, index, ranks: run.report.ranks, rows: run.report.rank_lines,
    guilty: new Set(ranksIn(run.culprits)), places: new Map(), marks: marksOf(run.report),
    compileMarks: compileMarks(run.compiled ?? []) };
  model.rowOf = new Int32Array(Math.max(model.ranks, 1)).fill(-1);
  model.timeOf = new Float64Array(Math.max(model.ranks, 1)).fill(NaN);  // when each rank ended
  model.rows.forEach((row, number) => {
    const times = row.times_ns ?? [NaN];
    ranksIn(row.ranks).forEach((rank, i) => {
      model.rowOf[rank] = number;
      model.timeOf[rank] = times[Math.min(i, times.length - 1)];
    });
  });
  for (const excerpt of run.sources ?? []) {
    for (const line of excerpt.named) model.places.set(`${excerpt.name}:${line}`, lineId(model, excerpt.name, line));
  }
  return model;
}

function lineId(model, name, line) { return `line-${model.index}-${name}-${line}`; }

function timesText(row) {
  if (!row.times_ns) return "";
  const least = row.times_ns.reduce((a, b) => Math.min(a, b)), most = row.times_ns.reduce((a, b) => Math.max(a, b));
  return least === most ? timeText(least) : `${timeText(least)} to ${timeText(most)}`;
}

// When ranks began to compile, by rank: [{at, text}].
function compileMarks(compiled) {
  const marks = new Map();
  for (const { name, ranks, compiles } of compiled) {
    const numbers = ranksIn(ranks);
    for (const { call, why, times_ns: times } of compiles) {
      const text = `compiles ${name} in call ${call}${why ? `: ${why}` : ""}`;
      if (!times) continue;
      numbers.forEach((rank, i) => {
        const at = times[Math.min(i, times.length - 1)];
        marks.set(rank, [...marks.get(rank) ?? [], { at, text, compile: true }]);
      });
    }
  }
  return marks;
}

// Faults and restarts, by rank: [{at, text, restart}].
function marksOf(report) {
  const marks = new Map();
  const add = (rank, mark) => marks.set(rank, [...marks.get(rank) ?? [], mark]);
  for (const line of report.faults ?? []) {
    for (const fired of line.fired) {
      if (fired.rank < 0) continue;  // the fault belongs to no rank
      add(fired.rank, { at: fired.time_ns, text: line.fault + (fired.call ? `, at ${fired.call}` : "") });
      if (fired.began_again_ns === undefined) continue;
      add(fired.rank, { at: fired.began_again_ns, text: "began again", restart: true });
    }
  }
  return marks;
}

// The text, with links for places whose lines the page contains: "train.cpp:41".
function linked(model, text) {
  if (model.places.size === 0) return [text];
  const pieces = [];
  let rest = 0;
  for (const match of text.matchAll(/[\w.+-]+:\d+/g)) {
    const id = model.places.get(match[0]);
    if (!id) continue;
    pieces.push(text.slice(rest, match.index), el("a", { href: `#${id}` }, match[0]));
    rest = match.index + match[0].length;
  }
  return [...pieces, text.slice(rest)];
}

function rankChip(model, runs) {
  const guilty = ranksIn(runs).some((rank) => model.guilty.has(rank));
  return el("span", { class: guilty ? "chip guilty" : "chip" }, ranksText(runs));
}
