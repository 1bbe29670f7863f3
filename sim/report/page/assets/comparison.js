// SPDX-License-Identifier: BSD-3-Clause
// Pages of several runs: what a sweep found, and a validation's two runs.

const BUG_HEADS = ["bug", "verdict", "what happened", "where", "how often", "seeds"];

function seedLinks(bug) {
  return bug.seeds.slice(0, 40).map((seed, at) => [at > 0 && ", ",
    seed.page ? el("a", { href: seed.page }, seed.seed) : seed.seed])
    .concat(bug.seeds.length > 40 ? ` and ${bug.seeds.length - 40} more` : []);
}

function bugRow(sweep, bug, index) {
  const share = bug.seeds.length / Math.max(sweep.ran, 1);
  const first = bug.seeds[0];
  return tableRow(BUG_HEADS, [
    first.page ? el("a", { href: first.page }, `${index + 1}`) : `${index + 1}`,
    el("span", { class: "state failed" }, bug.verdict), bug.headline,
    bug.culprit.map((line) => el("div", {}, el("code", {}, line))),
    [el("meter", { min: 0, max: 1, value: share, "aria-hidden": "true" }), ` ${bug.seeds.length} of ${sweep.ran}`],
    seedLinks(bug)]);
}

// The seeds as squares in their order: which bug each met.
function seedStrip(sweep) {
  const seedsOf = (bug, index) => bug.seeds.map((seed) => [seed.seed, { index, page: seed.page }]);
  const of = new Map(sweep.bugs.flatMap(seedsOf));
  const squares = sweep.seeds.slice(0, 2000).map((seed) => {
    const bug = of.get(seed);
    const text = bug ? `${bug.index + 1}` : "\u00B7";
    const title = bug ? `seed ${seed}: bug ${bug.index + 1}` : `seed ${seed}: as expected`;
    return bug?.page ? el("a", { class: "seed bad", href: bug.page, title }, text)
      : el("span", { class: bug ? "seed bad" : "seed", title }, text);
  });
  return el("div", { class: "seeds", role: "group",
    "aria-label": "Seeds in their order; the number is that of the bug" }, squares);
}

function sweepPage(data, main, factsPlace) {
  const { sweep } = data;
  const entries = [["program", sweep.program], ["seeds run", `${sweep.ran} of ${sweep.asked}`],
    ["failed", `${sweep.bugs.reduce((sum, bug) => sum + bug.seeds.length, 0)}`], ["bugs", `${sweep.bugs.length}`]];
  factsPlace.append(el("dl", { class: "facts" }, entries.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
  append(main, [
    sweep.bugs.length > 0 && part("bugs", "Bugs",
      el("p", {}, "Failures with the same verdict at the same lines are one bug."),
      el("div", { class: "scroll" }, table(BUG_HEADS, sweep.bugs.map((bug, index) => bugRow(sweep, bug, index)),
        "In the order of their first seeds"))),
    part("seeds", "Seeds", seedStrip(sweep))]);
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
      row("time", (run) => timeText(run.end_time_ns))])),
    el("p", {}, `${plural(validation.calls_alike, "call")} alike; ${plural(validation.results_bit_equal, "result")} ` +
      `bit-equal, ${validation.results_within_tolerance} within the tolerance.`),
    differences.length > 0 && [el("h3", {}, "Differences"),
      el("ul", { class: "lines" }, differences.slice(0, 200).map((line) => el("li", {}, line)))]);
}
