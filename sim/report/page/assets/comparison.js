// SPDX-License-Identifier: BSD-3-Clause
// Pages of several runs: the findings of a sweep, and the two runs of a validation.

const BUG_HEADS = ["bug", "verdict", "what happened", "where", "how often", "seeds"];

// Encodes a path for a link, whatever characters it contains.
function linkTo(page) { return page.split("/").map(encodeURIComponent).join("/"); }

function seedLink(seed, text = seed.seed) { return seed.page ? el("a", { href: linkTo(seed.page) }, text) : text; }

function seedLinks(bug) {
  const links = bug.seeds.map((seed, at) => [at > 0 && ", ", seedLink(seed)]);
  const left = bug.count - bug.seeds.length;
  return left > 0 ? [links, ` and ${left.toLocaleString("en")} more`] : links;
}

function shareBar(share) {
  const filled = el("span");
  filled.style.width = `${100 * share}%`;
  return el("span", { class: "share", "aria-hidden": "true" }, filled);
}

function bugRow(sweep, bug, index) {
  const often = `${bug.count} of ${sweep.ran}`;
  return tableRow(BUG_HEADS, [seedLink(bug.seeds[0], `${index + 1}`),
    el("span", { class: "state failed" }, bug.verdict),
    [bug.headline, bug.faults.map((fault) => el("div", {}, "fault: ", el("code", {}, fault))),
      bug.replay && el("div", {}, "replay: ", el("code", {}, bug.replay))],
    bug.culprit.map((line) => el("div", {}, el("code", {}, line))),
    [shareBar(bug.count / Math.max(sweep.ran, 1)), ` ${often}`],
    seedLinks(bug)]);
}

// The seeds as squares in their order. A failed seed shows the number of its bug.
function seedStrip(sweep) {
  const pages = new Map(sweep.bugs.flatMap((bug) => bug.seeds.map((seed) => [seed.seed, seed])));
  const square = ([seed, bug]) => {
    if (bug === 0) return el("span", { class: "seed", title: `seed ${seed}: as expected` }, "\u00B7");
    const page = pages.get(seed)?.page;
    return el(page ? "a" : "span", { class: "seed bad", href: page && linkTo(page), title: `seed ${seed}: bug ${bug}` },
      `${bug}`);
  };
  return el("div", { class: "seeds", role: "group",
    "aria-label": "Seeds in their order; the number is that of the bug" }, sweep.seeds.map(square));
}

function sweepPage(data, main, factsPlace) {
  const { sweep } = data;
  factsPlace.append(factList([["program", sweep.program], ["seeds", sweep.asked], ["run", `${sweep.ran}`],
    ["failed", `${sweep.failed}`], ["expected", sweep.expect]]));
  const left = sweep.ran - sweep.seeds.length;
  append(main, [
    part("bugs", "Bugs", el("p", {}, "Failures with the same verdict at the same lines are one bug."),
      el("div", { class: "scroll" }, table(BUG_HEADS, sweep.bugs.map((bug, index) => bugRow(sweep, bug, index)),
        "In the order of their first seeds"))),
    part("seeds", "Seeds", seedStrip(sweep),
      left > 0 && el("p", {}, `${left.toLocaleString("en")} more are not shown.`))]);
}

function validationFacts(validation) {
  return factList([["program", validation.program], ["ranks", validation.ranks.toLocaleString("en")],
    ["seed", BigInt(validation.seed).toString()]]);
}

function validationPart(data) {
  const { validation } = data;
  const heads = ["", ...validation.runs.map((run) => run.mode)];
  const row = (name, value) => tableRow(heads, [name, ...validation.runs.map(value)]);
  const differences = [...validation.outcome_differences, ...validation.call_differences,
    ...validation.result_differences];
  return part("comparison", "Both runs",
    el("div", { class: "scroll" }, table(heads, [row("verdict", (run) => run.verdict),
      row("culprits", (run) => run.culprits.length > 0 ? ranksText(runsOf(run.culprits)) : "nobody"),
      row("calls", (run) => run.calls.toLocaleString("en")), row("results", (run) => run.results.toLocaleString("en")),
      row("time", (run) => run.end_time_ns === undefined ? "not measured" : timeText(run.end_time_ns))])),
    el("p", {}, `${plural(validation.calls_alike, "call")} alike; ${plural(validation.results_bit_equal, "result")} ` +
      `bit-equal, ${validation.results_within_tolerance} within the tolerance.`),
    differences.length > 0 && [el("h3", {}, "Differences"),
      el("ul", { class: "lines" }, differences.slice(0, 200).map((line) => el("li", {}, line)))]);
}
