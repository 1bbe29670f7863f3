// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "compile/call.h"
#include "compile/segmented_compiler.h"

namespace rehearse::compiler {

// Runs the code of one call under the tracer although an entry would serve the call: the code may hang on what no guard
// sees.
class Verifier {
 public:
  Verifier(Call& call, SegmentedCompiler& segments) : call_(call), segments_(segments) {}

  // Verify::FirstHit, for an entry without segments. Throws StaleCapture where the code gives another graph.
  void check(Entry& hit);

  // Verify::Always: runs the code once, as it does without compile(). `known`: the segmented entry that holds, or null;
  // `shape`: what the call is captured with. A Capture: the code has no read, and its graph is still to be run.
  std::variant<Answer, Capture> run(Entry* known, const std::vector<LeafShape>& shape,
                                    const std::function<void()>& before_first_read);

 private:
  Capture capture_beside(const Entry& hit);
  std::variant<Answer, Capture> note(Entry* known, Capture captured, Segmented& segmented);

  Call& call_;
  SegmentedCompiler& segments_;
};

}  // namespace rehearse::compiler
