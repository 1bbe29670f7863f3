// SPDX-License-Identifier: BSD-3-Clause
// The parts of the page that are texts and tables.

const ROWS_AT_ONCE = 100;
const VALUES_MOST = 62;  // of one field, besides the first two

// Names and values; what has no value is left out.
function factList(entries) {
  return el("dl", { class: "facts" }, entries.filter(([, value]) => value)
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function facts(model) {
  const report = model.report;
  // The report leaves out what nobody measured.
  const time = report.end_time_ns === undefined ? "" : timeText(report.end_time_ns);
  const entries = [["program", report.program], ["ranks", report.ranks.toLocaleString("en")],
    ["seed", report.seed && BigInt(report.seed).toString()], ["schedule", report.schedule],
    [report.mode === "real" ? "real time" : "virtual time", time],
    [report.dumps ? "calls in the dumps" : "operations", report.operations?.toLocaleString("en")],
    ["carried by", report.transport], ["version", report.version]];
  return factList(entries);
}

function culprits(model) {
  if (model.culprits.length === 0) return null;
  const whereOf = (rank) => model.rows[model.rowOf[rank]]?.where;
  const wheres = [...new Set(ranksIn(model.culprits).slice(0, 64).map(whereOf))].filter(Boolean).slice(0, 3);
  return el("p", { class: "culprits" }, el("b", {}, countOf(model.culprits) === 1 ? "Culprit" : "Culprits"),
    rankChip(model, model.culprits), wheres.map((where) => el("code", {}, linked(model, where))));
}

function replayLine(report) {
  if (!report.replay) return null;
  const command = el("code", { id: "replay" }, report.replay);
  const button = el("button", { type: "button", onclick: () => copy(command, button) }, "Copy");
  return el("div", { class: "replay" }, el("span", { class: "hidden" }, "Run it again:"), command, button);
}

async function copy(command, button) {
  getSelection().selectAllChildren(command);
  try {
    await navigator.clipboard.writeText(command.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected";  // a page that was opened as a file may not write to the clipboard
  }
}

// Marks the values where they occur in the text.
function marked(text, values) {
  const wanted = values.filter(Boolean).sort((a, b) => b.length - a.length);
  const found = wanted.map((value) => [text.indexOf(value), value]).filter(([at]) => at >= 0)[0];
  if (!found) return [text];
  const [at, value] = found;
  const before = marked(text.slice(0, at), wanted), after = marked(text.slice(at + value.length), wanted);
  return [...before, el("mark", {}, value), ...after];
}

function sideCard(model, side, values, odd) {
  return el("div", { class: odd ? "side odd" : "side" },
    el("h4", {}, ranksText(runsOf(side.ranks))),
    el("code", { class: "code" }, marked(side.fingerprint, values)),
    side.where && el("div", {}, "at ", el("code", {}, linked(model, side.where))));
}

function valueText(value) { return value === "" ? "(none)" : value; }

function markedUnless(equal, value) { return equal ? valueText(value) : el("mark", {}, valueText(value)); }

function fieldRow(heads, field) {
  const second = { class: "differs", content: markedUnless(field.second === field.first, field.second) };
  const cells = [el("code", {}, field.name), valueText(field.first), second];
  if (heads.length > 3) {
    const others = field.others ?? [], left = others.length - VALUES_MOST;
    cells.push([others.slice(0, VALUES_MOST).map((value) => el("div", {}, markedUnless(value === field.first, value))),
      left > 0 && el("div", {}, `and ${plural(left, "further value")}`)]);
  }
  return tableRow(heads, cells);
}

// The values of one side in the fields that differ between sides. `side`: 0 is the first, 1 the second, 2 all others.
function differingValues(fields, side) {
  const differs = (field) => field.first !== field.second || (field.others ?? []).length > 0;
  return fields.filter(differs).flatMap((field) => side === 0 ? [field.first]
    : side === 1 ? (field.first === field.second ? [] : [field.second]) : field.others ?? []);
}

function difference(model, each) {
  const sides = [each.first, each.second, ...each.others];
  const heads = ["field", ranksText(runsOf(each.first.ranks)), ranksText(runsOf(each.second.ranks))];
  if (each.others.length > 0) heads.push("further ranks");
  const card = (side, index) => sideCard(model, side, differingValues(each.fields, Math.min(index, 2)), index > 0);
  const makesGroup = each.process_group_name === "";
  return [el("h3", {}, makesGroup ? "new_group()" : `Call #${each.seq_id} of group "${each.process_group_name}"`),
    el("div", { class: "sides" }, sides.map(card)),
    el("div", { class: "scroll" },
      table(heads, each.fields.map((field) => fieldRow(heads, field)), "Fields that differ"))];
}

function differencesPart(model) {
  const differences = model.report.differences;
  if (differences.length === 0) return null;
  return part(`differences-${model.index}`, "Calls that disagree",
    el("p", {}, "These calls should have been the same. What differs is marked."),
    differences.map((each) => difference(model, each)));
}

// Names what the page of a very large run leaves out.
function leftOutText(count, noun) {
  return count > 0 && el("p", { class: "quiet" }, `${plural(count, `more ${noun}`)} are in report.json alone.`);
}

// If ranks of one row wait for each other, the row's own ranks are among those it waits for.
function awaitedText(row) {
  const own = new Set(ranksIn(row.ranks)), awaited = ranksIn(row.waits_for);
  const others = awaited.filter((rank) => !own.has(rank));
  if (others.length === awaited.length) return ranksText(row.waits_for);
  return `each other${others.length > 0 ? ` and ${ranksText(runsOf(others))}` : ""}`;
}

const RANK_HEADS = ["ranks", "how it ended", "doing", "last completed", "where", "waits for", "time"];

// The state of a rank in the words of the text report.
const endText = (row) => row.state === "stopped" ? "still running" : row.state;

function rankRow(model, row) {
  const guilty = ranksIn(row.ranks).some((rank) => model.guilty.has(rank));
  return tableRow(RANK_HEADS, [
    [numbersText(row.ranks), guilty && el("span", { class: "hidden" }, " (culprit)")],
    el("span", { class: `state ${row.state}` }, endText(row)),
    { class: "doing", content: linked(model, row.doing ?? "") }, row.last ?? "",
    row.where ? el("code", {}, linked(model, row.where)) : "",
    row.waits_for ? awaitedText(row) : "", { class: "number", content: timesText(row) },
  ], { class: guilty && "guilty-row", "data-ranks": row.ranks.join(" ") });
}

function ranksPart(model, filters) {
  const body = el("tbody");
  const view = el("div", { class: "scroll" }, table(RANK_HEADS, [], "Ranks that ended alike share a row."));
  view.querySelector("tbody").replaceWith(body);
  const list = growing(body, (row) => rankRow(model, row), ROWS_AT_ONCE, "rows");
  const shown = () => model.rows.filter((row) => (filters.rank === null || ranksIn(row.ranks).some(filters.rank)) &&
    filters.showsText(row.doing, row.last, row.where, endText(row)));
  const refill = () => {
    const rows = shown();
    list.refill(rows);
    return `${rows.length} of ${plural(model.rows.length, "row")} of ranks`;
  };
  filters.listen(refill);
  refill();
  return part(`ranks-${model.index}`, "Ranks", view, list.button, leftOutText(model.ranks_left_out, "rank"));
}

function findingsPart(model) {
  const findings = model.report.findings ?? [];
  if (findings.length === 0) return null;
  return part(`findings-${model.index}`, "What checkers found", findings.map((finding) => [
    el("h3", {}, linked(model, finding.headline)),
    finding.ranks.length > 0 && el("p", {}, rankChip(model, runsOf(finding.ranks))),
    el("ul", { class: "lines" }, finding.details.map((detail) => el("li", {}, linked(model, detail)))),
  ]));
}

function firingText(firing) {
  const who = firing.rank < 0 ? "" : `rank ${firing.rank} `, call = firing.call ? `in ${firing.call} ` : "";
  const again = firing.began_again_ns === undefined ? "" : `; began again at ${timeText(firing.began_again_ns)}`;
  return `${who}${call}at ${timeText(firing.time_ns)}${again}`;
}

function faultRow(heads, fault) {
  const fired = fault.fired.map((firing) => el("div", {}, firingText(firing)));
  return tableRow(heads, [el("code", {}, fault.fault), `${fault.times}`, fired.length > 0 ? fired : fault.why_not]);
}

function faultsPart(model) {
  const faults = model.report.faults ?? [];
  if (faults.length === 0) return null;
  const heads = ["fault", "times", "where it fired, or why it did not"];
  return part(`faults-${model.index}`, "Faults on purpose",
    el("div", { class: "scroll" },
      table(heads, faults.map((fault) => faultRow(heads, fault)), "What was planned, and what came of it")));
}

function compileTime(compile) { return compile.times_ns ? ` at ${timesText(compile)}` : ""; }

function compiledRow(model, heads, each) {
  const compiles = each.compiles.map((compile) => el("div", {}, `call ${compile.call}${compileTime(compile)}: `,
    compile.why || "the first one", compile.where && [" at ", el("code", {}, linked(model, compile.where))],
    compile.communicates && " (its graph communicates)"));
  return tableRow(heads, [el("code", {}, each.name), ranksText(each.ranks), `${each.calls}`,
    compiles.length > 0 ? compiles : "never compiled"]);
}

// The pieces of compiled functions, by the names of their spans: "forward of submod_1".
function pieces(model) {
  const names = model.timeline?.span_names ?? [];
  if (names.length === 0) return null;
  const items = names.map((name) => el("li", {}, el("code", {}, name)));
  return [el("h3", {}, "Pieces that ran"), el("ul", { class: "lines" }, items)];
}

function compiledPart(model) {
  const compiled = model.compiled ?? [];
  if (compiled.length === 0 && !pieces(model)) return null;
  const heads = ["function", "ranks", "calls", "compiled in"];
  return part(`compiled-${model.index}`, "Compiled functions", compiled.length > 0 && el("div", { class: "scroll" },
    table(heads, compiled.map((each) => compiledRow(model, heads, each)), "Ranks that compiled alike share a row.")),
    pieces(model));
}

function placesPart(model) {
  const { call_places: places, call_counts: counts } = model.report;
  if (places.length + counts.length === 0) return null;
  const sides = (each, text) => each.sides.map((side) => el("div", {}, el("b", {}, ranksText(runsOf(side.ranks))), ": ",
    text(side)));
  return part(`places-${model.index}`, "Lines that ranks called from",
    places.length > 0 && [el("h3", {}, "First calls made from different places"), el("ul", { class: "lines" },
      places.map((each) => el("li", {}, `#${each.seq_id} on group "${each.process_group_name}"`,
        sides(each, (side) => el("code", {}, linked(model, side.where))))))],
    counts.length > 0 && [el("h3", {}, "Lines that some ranks called more often than others"),
      el("ul", { class: "lines" }, counts.map((each) => el("li", {},
        el("code", {}, linked(model, each.where)), `, group "${each.process_group_name}"`,
        sides(each, (side) => plural(side.times, "time")))))]);
}

function linesPart(model, id, title, lines, filters) {
  if (lines.length === 0) return null;
  const items = el("ul", { class: id === "events" ? "lines columns" : "lines" });
  const list = growing(items, (line) => el("li", {}, linked(model, line)), ROWS_AT_ONCE, "lines");
  const refill = () => { list.refill(lines.filter((line) => filters.showsText(line))); };
  filters.listen(refill);
  refill();
  return part(`${id}-${model.index}`, title, items, list.button);
}

function excerptElement(model, excerpt) {
  return el("div", { class: "excerpt" },
    el("h3", {}, excerpt.name, " ", el("span", { class: "quiet" }, excerpt.path)),
    el("ol", { tabindex: "0", "aria-label": `${excerpt.name}, lines ${excerpt.first} and on` },
      excerpt.lines.map((line, i) => sourceLine(model, excerpt, line, excerpt.first + i))));
}

function sourceLine(model, excerpt, line, number) {
  const named = excerpt.named.includes(number);
  const id = named && lineId(model, excerpt.name, number);
  return el("li", { class: named && "named", id, tabindex: named && "-1" },
    el("span", {}, `${number}`), line === "" ? " " : line);
}

function sourcesPart(model) {
  const sources = model.sources ?? [];
  if (sources.length === 0) return null;
  return part(`source-${model.index}`, "Source lines",
    el("p", { class: "quiet" }, "The files as they were when this page was written."),
    sources.map((excerpt) => excerptElement(model, excerpt)));
}

function checksPart(model) {
  const { report } = model;
  const checks = Object.entries(report.checks);
  const entries = [["decisions", report.decisions?.toLocaleString("en")],
    ["switches", report.switches?.toLocaleString("en")], ["identity", report.identity]];
  const hasNumbers = entries.some(([, value]) => value);
  if (checks.length + report.files.length === 0 && !hasNumbers && !report.hint) return null;
  return part(`about-${model.index}`, "About this run",
    checks.length > 0 && [el("h3", {}, "Checks that held"), el("ul", { class: "lines" },
      checks.map(([name, count]) => el("li", {}, `${name}: ${plural(count, "time")}`)))],
    hasNumbers && [el("h3", {}, "Numbers"), factList(entries)],
    report.files.length > 0 && [el("h3", {}, "Files"), el("ul", { class: "lines" },
      report.files.map((file) => el("li", {}, el("code", {}, file))))],
    report.hint && el("p", {}, report.hint));
}
