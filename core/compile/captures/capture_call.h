// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

// One call, named.
struct CallView {
  const LeafList& leaves;
  const std::vector<std::string>& sources;    // of the leaves
  std::shared_ptr<torch::nn::Module> module;  // null for a function
  const std::vector<std::string>& ddp_ignored;
  const std::vector<std::string>& argument_names;  // as CompileOptions has them
  const GlobalState& state;                        // where the call began
};

// Which sizes and integers of the call are to be symbols.
std::vector<LeafShape> shape_of(const CallView& call, const Dynamism& dynamism);

// The same symbols, with the sizes of another call.
std::vector<LeafShape> with_sizes_of(std::vector<LeafShape> shape, const LeafList& leaves);

// The code was refused where it cannot go on, and has kept tensors, so that it must not run once more.
class KeptInRefusedCall : public CompileError {
 public:
  using CompileError::CompileError;
};

// Runs the user's code on fakes of that shape and makes what it did a graph with guards. Throws capture::FakeError or
// shapes::ShapeError for what no graph can hold, and what the user's code throws. Does not compute; runs in the calling
// fiber.
//
// With `segments`, which may be null, reads of data and eager regions end segments, which run at once: the call is
// served then (Capture::served), and the capture is that of the way that it took; it is empty where the rest of the
// code ran eagerly.
Capture capture_call(const CallView& call, std::vector<LeafShape> shape, UserCode& code, SegmentedCapture* segments);

}  // namespace rehearse::compiler
