// SPDX-License-Identifier: BSD-3-Clause
// Shows what the flight recorders of a real job left, apart from the calls themselves.

function stackElement(stack) {
  const own = new Set(stack.own_frames);
  return [el("h3", {}, `${ranksText(runsOf(stack.ranks))} in ${stack.call}`),
    el("ol", { class: "lines" }, stack.frames.map((frame) =>
      el("li", {}, el("code", {}, own.has(frame) ? el("b", {}, frame) : frame))))];
}

function dumpsPart(model) {
  const { dumps } = model.report;
  if (!dumps) return null;
  const missing = dumps.without_dump.length > 0 &&
    `Nothing is known of ${ranksText(runsOf(dumps.without_dump))}, which left no dump.`;
  return part(`dumps-${model.index}`, "Dumps of the flight recorder",
    el("p", {}, `Format ${dumps.format}, of ${ranksText(runsOf(dumps.ranks))}. `, missing),
    dumps.stacks.length > 0 && el("p", { class: "quiet" },
      "Stacks, the innermost function first. What is not of PyTorch or Python itself stands out."),
    dumps.stacks.map(stackElement));
}
