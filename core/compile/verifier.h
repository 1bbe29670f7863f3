// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "compile/call.h"
#include "compile/segmented_compiler.h"

namespace rehearse::compiler {

// Runs the code of one call under the tracer although an entry would serve the call, because the code may depend on
// state that no guard checks.
class Verifier {
 public:
  Verifier(Call& call, SegmentedCompiler& segments) : call_(call), segments_(segments) {}

  // For Verify::FirstHit and an entry without segments. Throws StaleCapture if the code gives another graph.
  void check(Entry& hit);

  // For Verify::Always: runs the code exactly once, as a call without compile() does. `known`: the entry with segments
  // whose guards hold; null: none. `shape`: the shapes to capture with. The capture calls `compare`
  // (SegmentOwner::compare_call). Returns a Capture if the code has no read or eager region; then its graph
  // has not run yet.
  std::variant<Answer, Capture> run(Entry* known, const std::vector<LeafShape>& shape,
                                    const std::function<Ability(Ability)>& compare);

 private:
  Capture capture_beside(const Entry& hit);
  std::variant<Answer, Capture> note(Entry* known, Capture captured, Segmented& segmented);

  Call& call_;
  SegmentedCompiler& segments_;
};

}  // namespace rehearse::compiler
