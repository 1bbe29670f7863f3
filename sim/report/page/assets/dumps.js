// SPDX-License-Identifier: BSD-3-Clause
// Shows what the flight recorders of a real job left, apart from the calls themselves.

function frameList(frames, own) {
  return el("ol", { class: "lines" }, frames.map((frame) =>
    el("li", {}, el("code", {}, own.has(frame) ? el("b", {}, frame) : frame))));
}

// Shows the job's own frames if there are any, because names of C++ templates fill screens. All frames can be unfolded.
function stackElement(stack) {
  const { frames, own_frames: ownFrames } = stack;
  const own = new Set(ownFrames), hasOthers = ownFrames.length > 0 && ownFrames.length < frames.length;
  return [el("h3", {}, `${ranksText(runsOf(stack.ranks))} in ${stack.call}`),
    frameList(hasOthers ? ownFrames : frames, own),
    hasOthers && el("details", {}, el("summary", {}, `All ${plural(frames.length, "frame")}`), frameList(frames, own))];
}

function dumpsPart(model) {
  const { dumps } = model.report;
  if (!dumps) return null;
  const missing = dumps.without_dump.length > 0 &&
    `Nothing is known of ${ranksText(runsOf(dumps.without_dump))}, which left no dump.`;
  return part(`dumps-${model.index}`, "Dumps of the flight recorder",
    el("p", {}, `Format ${dumps.format}, of ${ranksText(runsOf(dumps.ranks))}. `, missing),
    dumps.stacks.length > 0 && el("p", { class: "quiet" },
      "Stacks, the innermost function first. Frames of PyTorch and Python themselves are folded."),
    dumps.stacks.map(stackElement));
}
