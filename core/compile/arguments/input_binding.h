// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/compile/leaf.h>

namespace rehearse::compiler {

// The source of a graph's input in a call: a leaf, the size of a leaf, a captured tensor, or a value of an earlier
// segment.
struct InputBinding {
  enum class Kind : std::uint8_t { Tensor, Int, Size, Captured, Value };
  Kind kind = Kind::Tensor;
  // The number of the leaf, or of an earlier segment's value. Captured: 1 + the number of the tensor among those of the
  // module, 0 if it has none.
  std::uint32_t index = 0;
  std::int64_t dimension = 0;   // Value: how many tensors there are among the values before it
  at::Tensor tensor = {};       // the captured tensor
  bool is_made_inside = false;  // each run of the code makes that tensor anew

  // Compares two captured tensors by content if each run of the code makes them anew (from a list of numbers), or if
  // both have no dimensions: LibTorch turns numbers into such tensors unseen by the tracer (`y.index_put_({0}, 1.0)`).
  // In all other cases, two objects with the same memory, dtype and layout count as one tensor. A tensor that requires
  // grad, or is not on the CPU, equals only itself.
  bool operator==(const InputBinding& other) const;
};

// The leaves of a call that are inputs of its capture, in the order in which the capture numbers them.
struct CapturedLeaves {
  std::vector<std::uint32_t> tensors, ints;
};

InputBinding binding_of(const capture::GraphInput& input, const CapturedLeaves& leaves);

// `values`: results of earlier segments; may be empty if no binding refers to them.
c10::IValue value_of(const InputBinding& binding, const LeafList& leaves, const std::vector<c10::IValue>& values);
std::vector<c10::IValue> values_of(const std::vector<InputBinding>& bindings, const LeafList& leaves,
                                   const std::vector<c10::IValue>& values = {});

// Keeps the inputs of one graph between calls. A graph may have hundreds of parameters, and counting references to all
// of them would cost more than all guards. So a captured tensor stays in the buffer unless a run has moved it out; a
// call only fills in the other inputs. Calls may overlap; each has its own inputs.
class InputBuffer {
 public:
  // `bindings` must be the same in each call.
  std::vector<c10::IValue> take(const std::vector<InputBinding>& bindings, const LeafList& leaves);
  // Call it after the run. Drops references to the call's own values.
  void give_back(std::vector<c10::IValue> inputs, const std::vector<InputBinding>& bindings);

 private:
  std::vector<c10::IValue> inputs_;  // empty while a call uses them
};

}  // namespace rehearse::compiler
