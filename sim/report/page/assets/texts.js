// SPDX-License-Identifier: BSD-3-Clause
// Numbers, times and ranks in the form in which people write them.

const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3]];

// Formats a time as reports do: the largest unit that leaves at least 1, with at most three decimals, cut off.
function timeText(nanoseconds) {
  for (const [unit, size] of UNITS) {
    if (Math.abs(nanoseconds) < size) continue;
    return `${Math.trunc(nanoseconds / size * 1000 + Math.sign(nanoseconds) * 1e-6) / 1000} ${unit}`;
  }
  return `${Math.round(nanoseconds)} ns`;
}

function plural(count, noun) { return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`; }

// The ranks as runs, each by its first and last rank: [0, 2, 5, 5] means 0, 1, 2 and 5.
function runsOf(ranks) {
  const runs = [];
  for (const rank of ranks) {
    if (runs.length > 0 && runs[runs.length - 1] === rank - 1) runs[runs.length - 1] = rank;
    else runs.push(rank, rank);
  }
  return runs;
}

function ranksIn(runs) {
  const ranks = [];
  for (let i = 0; i < runs.length; i += 2) {
    for (let rank = runs[i]; rank <= runs[i + 1]; ++rank) ranks.push(rank);
  }
  return ranks;
}

function countOf(runs) {
  let count = 0;
  for (let i = 0; i < runs.length; i += 2) count += runs[i + 1] - runs[i] + 1;
  return count;
}

// For example "0-2,5". Of many separate runs, only the first ones.
function numbersText(runs, most = 8) {
  const texts = [];
  for (let i = 0; i < runs.length && texts.length < most; i += 2) {
    texts.push(runs[i] === runs[i + 1] ? `${runs[i]}` : `${runs[i]}-${runs[i + 1]}`);
  }
  const left = countOf(runs) - countOf(runs.slice(0, 2 * most));
  return texts.join(",") + (left > 0 ? ` and ${left} more` : "");
}

function ranksText(runs, most) { return `${countOf(runs) === 1 ? "rank" : "ranks"} ${numbersText(runs, most)}`; }

// Turns the reader's input, such as "0-3, 7", into a predicate. Null for no input, undefined for text that is no list
// of ranks.
function rankFilter(text) {
  if (text.trim() === "") return null;
  const runs = [];
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(word);
    if (!match) return undefined;
    runs.push([Number(match[1]), Number(match[2] ?? match[1])]);
  }
  return (rank) => runs.some(([first, last]) => rank >= first && rank <= last);
}

// For example "allreduce #7 of "fc1.weight"".
function callTitle(signature, number) {
  return `${signature.name} #${number}${signature.label ? ` of "${signature.label}"` : ""}`;
}
