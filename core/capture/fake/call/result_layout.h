// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>

// Sizes and strides that LibTorch's kernels give their results, computed with symbolic arithmetic.
namespace rehearse::capture {

using SymInts = std::vector<c10::SymInt>;

struct Layout {
  SymInts sizes, strides;
};

// True if the condition holds. If the answer depends on backed symbols, adds a guard. If it depends on unbacked
// symbols, returns false.
inline bool holds(const c10::SymBool& condition) { return TORCH_GUARD_OR_FALSE(condition); }

// True if LibTorch knows that the condition holds. Never adds a guard.
inline bool is_known(const c10::SymBool& condition) { return TORCH_STATICALLY_KNOWN_TRUE(condition); }

// True if both have the same length and holds() says that their elements are equal.
bool equal_ints(c10::SymIntArrayRef left, c10::SymIntArrayRef right);

// Like holds(), but returns nothing if the answer depends on unbacked symbols.
inline std::optional<bool> answer(const c10::SymBool& condition) {
  if (TORCH_GUARD_OR_FALSE(condition)) return true;
  return TORCH_GUARD_OR_TRUE(condition) ? std::nullopt : std::optional(false);
}

// `then` if the condition holds, else `otherwise`. If only the running program can decide, the graph makes the choice.
c10::SymInt choose(const c10::SymBool& condition, const c10::SymInt& then, const c10::SymInt& otherwise);

c10::SymInt product(c10::SymIntArrayRef values);

// Compares two dimensions by their strides in one tensor, as LibTorch does before it orders dimensions. -1: `inner` may
// stay inside `outer`. 1: they must be swapped. 0: undecided. Assumes that sizes that are known only at run time are at
// least 2. If such a size is smaller, the order changes only strides that no element uses.
int compare_dimensions(c10::SymIntArrayRef strides, c10::SymIntArrayRef sizes, std::size_t inner, std::size_t outer);

// Dense strides; `order`: dimensions from the innermost to the outermost.
SymInts strides_in_order(c10::SymIntArrayRef sizes, const std::vector<std::size_t>& order);

// Strides of a new tensor in `format`, which must not be Preserve.
SymInts strides_of(c10::SymIntArrayRef sizes, c10::MemoryFormat format);

// The strides that at::empty_like() chooses. For Preserve: those of `like` if it is dense, else the nearest dense ones.
SymInts strides_like(const at::Tensor& like, c10::MemoryFormat format);

// Dense strides in the same order as `strides`, as at::infer_dense_strides() gives them.
SymInts dense_strides(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides);

// The result of Tensor::suggest_memory_format(): ChannelsLast, ChannelsLast3d or Contiguous.
c10::MemoryFormat suggested_format(const at::Tensor& tensor);

// The strides that at::TensorIterator gives the result. `of_operands`: the operands' strides in the broadcast shape, 0
// along broadcast dimensions.
SymInts iterated_strides(const SymInts& sizes, const std::vector<SymInts>& of_operands);

// The layout that at::TensorIterator gives the result for these operands: broadcast sizes, strides like the operands'.
Layout elementwise_layout(const std::vector<at::Tensor>& operands);

}  // namespace rehearse::capture
