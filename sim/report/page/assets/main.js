// SPDX-License-Identifier: BSD-3-Clause
// Puts the page together. The verdict is on the page before any script runs; timelines appear after the first paint.

function byId(id) { return document.getElementById(id); }

function fillContents(main) {
  byId("contents").replaceChildren(el("ul", {}, [...main.querySelectorAll("section")].map((section) =>
    el("li", {}, el("a", { href: `#${section.id}` }, section.dataset.title)))));
}

const THEMES = ["", "light", "dark"];

function themeButton(recolor) {
  const root = document.documentElement;
  const name = () => `Colours: ${root.dataset.theme || "as the system"}`;
  const button = el("button", { type: "button", id: "theme", onclick: () => {
    root.dataset.theme = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
    button.textContent = name();
    recolor();
  } }, name());
  return button;
}

// Prints in the light theme, whose colours suit paper.
function printLight(recolor) {
  const root = document.documentElement;
  let before = "";
  addEventListener("beforeprint", () => {
    before = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    recolor();
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = before;
    recolor();
  });
}

function runParts(model, filters) {
  return [differencesPart(model), waitsPart(model), ranksPart(model, filters), findingsPart(model), dumpsPart(model),
    sourcesPart(model), compiledPart(model), faultsPart(model), placesPart(model),
    linesPart(model, "remarks", "Remarks", model.report.remarks, filters),
    linesPart(model, "events", "Last events", model.report.last_events, filters), checksPart(model)];
}

// On a page of several runs, adds the run's name to the part's entry in the list of contents.
function named(element, name) {
  if (element) element.dataset.title += `: ${name}`;
  return element;
}

// The timelines stand first, one above the other. They are filled in after the rest has been painted.
function addTimelines(models, filters, place) {
  const title = (model) => models.length > 1 ? `Timeline: ${model.name}` : "Timeline";
  const views = [];
  for (const model of models) {
    model.timeline = readTimeline(model);
    const element = timelinePart(model, filters, title(model));
    if (!element) continue;
    place.append(element);
    views.push(element.view);
    element.view.shown();
  }
  return views;
}

function reportPage(data, main, factsPlace) {
  const models = data.runs.map(modelOf);
  const [first] = models;
  if (data.kind === "report") append(factsPlace, [culprits(first), facts(first), replayLine(first.report)]);
  if (data.kind === "validation") factsPlace.append(validationFacts(data.validation));
  const filters = new Filters(models);
  const place = el("div", { class: "timelines" });
  const several = models.length > 1;
  const partsOf = (model) => [several && el("h2", { class: "run" }, model.name),
    runParts(model, filters).map((each) => several ? named(each, model.name) : each)];
  append(main, [data.kind === "validation" && validationPart(data), filters.element, place,
    models.map(partsOf)]);
  fillContents(main);
  const views = [];
  const recolor = () => views.forEach((view) => view.recolor());
  requestAnimationFrame(() => setTimeout(() => {
    views.push(...addTimelines(models, filters, place));
    fillContents(main);
    document.documentElement.dataset.ready = "yes";
  }));
  return recolor;
}

function start() {
  const data = JSON.parse(byId("data").textContent);
  const main = byId("main"), factsPlace = byId("facts");
  let recolor = () => {};
  if (data.kind === "sweep") {
    sweepPage(data, main, factsPlace);
    fillContents(main);
    document.documentElement.dataset.ready = "yes";
  } else {
    recolor = reportPage(data, main, factsPlace);
  }
  byId("foot").append(themeButton(recolor), el("span", {}, "Made by Rehearse. This page loads nothing."));
  printLight(recolor);
}
