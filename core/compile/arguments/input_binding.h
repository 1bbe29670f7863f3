// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/compile/leaf.h>

namespace rehearse::compiler {

// Where a graph's input is found in a call.
struct InputBinding {
  enum class Kind : std::uint8_t { Tensor, Int, Size, Captured, Value };
  Kind kind = Kind::Tensor;
  std::uint32_t index = 0;  // of the leaf; of the value that a segment before has given
  std::int64_t dimension = 0;
  at::Tensor tensor = {};       // of the capture itself
  bool is_made_inside = false;  // that tensor is made anew in each run of the code

  // What the code makes anew in each call is compared by its contents: tensors of lists, and numbers, of which LibTorch
  // makes a tensor where no tracer sees it (`y.index_put_({0}, 1.0)`). Two objects for the same memory are one tensor.
  bool operator==(const InputBinding& other) const;
};

// The leaves of a call that its capture knows, as that counts them.
struct CapturedLeaves {
  std::vector<std::uint32_t> tensors, ints;
};

InputBinding binding_of(const capture::GraphInput& input, const CapturedLeaves& leaves);

// `values`: of segments; may be empty where nothing is bound to one.
c10::IValue value_of(const InputBinding& binding, const LeafList& leaves, const std::vector<c10::IValue>& values);
std::vector<c10::IValue> values_of(const std::vector<InputBinding>& bindings, const LeafList& leaves,
                                   const std::vector<c10::IValue>& values = {});

}  // namespace rehearse::compiler
