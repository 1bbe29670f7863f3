// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/errors.h>
#include <rehearse/compile/leaf.h>
#include <rehearse/compile/user_code.h>

#include "compile/arguments/dynamism.h"
#include "compile/captures/capture.h"

namespace rehearse::compiler {

class SegmentedCapture;

// The facts about a call that its capture uses.
struct CallView {
  const LeafList& leaves;
  const std::vector<std::string>& sources;    // the leaves' names
  std::shared_ptr<torch::nn::Module> module;  // null for a function
  const std::vector<std::string>& ddp_ignored;
  const std::vector<std::string>& argument_names;  // from CompileOptions
  const GlobalState& state;                        // at the start of the call
};

// Decides which sizes and integers of the call become symbols.
std::vector<LeafShape> shape_of(const CallView& call, const Dynamism& dynamism);

// The same symbols with the sizes of another call.
std::vector<LeafShape> with_sizes_of(std::vector<LeafShape> shape, const LeafList& leaves);

// The code was refused and cannot go on. It has kept tensors, or has switched a module that cannot be switched back, so
// it must not run again either.
class KeptInRefusedCall : public CompileError {
 public:
  using CompileError::CompileError;
};

// Called before the capture runs recorded operators for real and keeps no graph: the code has thrown (then `refusal` is
// empty), keeps tensors, or is refused for another reason. The operators may be collectives. So ranks that compile
// together must first agree to run them. If the function throws CompileError, the operators do not run.
using BeforeRunningOnce = std::function<void(const std::string& refusal, bool keeps_tensors)>;

// Runs the user's code on fakes with this shape, and turns what it did into a graph with guards. Throws
// capture::FakeError or shapes::ShapeError for code that no graph can hold. Throws CompileError if the code fixes a
// size that was marked dynamic, or watches a local variable. Throws KeptInRefusedCall (only with `segments`), and
// whatever the user's code throws. Computes nothing unless the capture ends early or the code leaves fakes behind; then
// it runs recorded operators. After an early end, the rest of the code runs on real tensors.
//
// With `segments`, which may be null, reads of data and eager regions end segments, which run at once. Then
// Capture::served has the results of the call, and the other fields describe the path that the call took. If the rest
// of the code ran eagerly, they are empty, except for `refusal` and `keeps_tensors`.
Capture capture_call(const CallView& call, std::vector<LeafShape> shape, UserCode& code, SegmentedCapture* segments,
                     const BeforeRunningOnce& before_running_once);

}  // namespace rehearse::compiler
