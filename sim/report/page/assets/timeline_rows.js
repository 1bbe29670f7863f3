// SPDX-License-Identifier: BSD-3-Clause
// The rows of a timeline: one for each rank, or one for ranks that did the same.

const FOLD_FROM = 33;  // from this number of ranks on, rows are folded unless the reader decides otherwise

const ENDED_WELL = 0, NEVER_ENDED = 1, FAILED = 2;

function howEnded(calls, i) {
  return calls.ended[i] === NEVER ? NEVER_ENDED : calls.failed[i] ? FAILED : ENDED_WELL;
}

// A hash of what the rank did and how it ended, but not of when.
function storyOf(model, rank) {
  const { calls } = model.timeline;
  let hash = 2166136261 ^ (model.rowOf[rank] + 1);
  for (let i = calls.offsets[rank]; i < calls.offsets[rank + 1]; ++i) {
    hash = Math.imul(hash ^ calls.kind[i], 16777619);
    hash = Math.imul(hash ^ calls.number[i], 16777619);
    hash = Math.imul(hash ^ howEnded(calls, i), 16777619);
  }
  return hash >>> 0;
}

// Compares exactly, because two ranks with equal hashes may have made different calls.
function sameStory(model, a, b) {
  const { calls } = model.timeline;
  const from = calls.offsets[a], other = calls.offsets[b], size = calls.offsets[a + 1] - from;
  if (model.rowOf[a] !== model.rowOf[b] || calls.offsets[b + 1] - other !== size) return false;
  for (let i = 0; i < size; ++i) {
    if (calls.kind[from + i] !== calls.kind[other + i]) return false;
    if (calls.number[from + i] !== calls.number[other + i]) return false;
    if (howEnded(calls, from + i) !== howEnded(calls, other + i)) return false;
  }
  return true;
}

// Returns [{rank, runs}]: the row shows `rank` for all ranks in `runs`. Ranks that a fault hit have their own rows.
function timelineRows(model, folded, shows) {
  const rows = [], known = new Map();
  for (let rank = 0; rank < model.timeline.ranks; ++rank) {
    if (!shows(rank)) continue;
    const story = folded && !model.marks.has(rank) ? storyOf(model, rank) : undefined;
    const row = (story === undefined ? [] : known.get(story) ?? []).find((each) => sameStory(model, each.rank, rank));
    if (row) {
      row.ranks.push(rank);
      continue;
    }
    const own = { rank, ranks: [rank] };
    rows.push(own);
    if (story !== undefined) known.set(story, [...known.get(story) ?? [], own]);
  }
  for (const row of rows) row.runs = runsOf(row.ranks);
  return rows;
}
