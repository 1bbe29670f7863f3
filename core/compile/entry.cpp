// SPDX-License-Identifier: BSD-3-Clause
#include "compile/entry.h"

#include <algorithm>
#include <utility>

#include "compile/segments/segment_tree.h"

namespace rehearse::compiler {

bool Entry::holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure) const {
  if (!capture.guards.holds(leaves, state, failure)) return false;
  return !segments || std::all_of(segments->guards.begin(), segments->guards.end(),
                                  [&](const GuardSet& guards) { return guards.holds(leaves, state, failure); });
}

std::vector<c10::IValue> Entry::run(const LeafList& leaves) {
  std::vector<c10::IValue> values = inputs.take(capture.inputs, leaves);
  std::vector<c10::IValue> outputs = graph.run(std::move(values));
  inputs.give_back(std::move(values), capture.inputs);  // for the next call: the inputs that the run did not consume
  return outputs;
}

std::size_t Entry::paths() const { return 1 + (segments ? segments->guards.size() : 0); }

}  // namespace rehearse::compiler
