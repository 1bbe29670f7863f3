// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/stack.h>

#include "capture/trace/operators/treatment.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// Registers the results of a recorded operator: which fakes have the node's value, and the symbols that it defines.
class OperatorResults {
 public:
  // The four objects must outlive this one.
  OperatorResults(Recording& recording, const Treatment& treatment, const torch::jit::Stack& arguments,
                  graph::Node& node)
      : recording_(recording), treatment_(treatment), arguments_(arguments), node_(node) {}

  // Replaces a fake among the results by its real tensor if the user holds the real tensor (see Inputs::real_of()).
  // Keeps the fakes of constants that the code made.
  void note(torch::jit::Stack& results);
  // Call it if the node wrote to tensors under autograd. Then a written tensor, its base, and all that autograd
  // considers views of that base, get the new history.
  void note_history();

 private:
  using Path = std::vector<std::int64_t>;  // indices of items that lead to a value of the node

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
