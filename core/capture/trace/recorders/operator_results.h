// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/stack.h>

#include "capture/trace/operators/treatment.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// Notes what a recorded operator gave: which fakes have the node's value, and the symbols that come with them.
class OperatorResults {
 public:
  // All live as long as this does. `arguments`: what the operator was given.
  OperatorResults(Recording& recording, const Treatment& treatment, const torch::jit::Stack& arguments,
                  graph::Node& node)
      : recording_(recording), treatment_(treatment), arguments_(arguments), node_(node) {}

  // Replaces the results by what the user gets for them.
  void note(torch::jit::Stack& results);
  // What the node has written, and all that autograd takes for views of the same tensor, share their history.
  void note_history();

 private:
  using Path = std::vector<std::int64_t>;  // of items, to a value of the node

  c10::IValue note_value(const c10::IValue& result, Path path);
  at::Tensor note_tensor(const at::Tensor& fake, Path path);
  void note_symbols(const at::Tensor& fake, const Path& path);
  void note_views(const at::Tensor& fake);

  Recording& recording_;
  const Treatment& treatment_;
  const torch::jit::Stack& arguments_;
  graph::Node& node_;
};

}  // namespace rehearse::capture
