// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymInt.h>

// Sizes and strides that LibTorch's kernels give their results, in arithmetic on symbols.
namespace rehearse::capture {

using SymInts = std::vector<c10::SymInt>;

struct Layout {
  SymInts sizes, strides;
};

// A guard where symbols decide; false where unbacked ones would have to.
inline bool holds(const c10::SymBool& condition) { return TORCH_GUARD_OR_FALSE(condition); }

// Known without a guard.
inline bool is_known(const c10::SymBool& condition) { return TORCH_STATICALLY_KNOWN_TRUE(condition); }

// As holds(); none where unbacked sizes decide.
inline std::optional<bool> answer(const c10::SymBool& condition) {
  if (TORCH_GUARD_OR_FALSE(condition)) return true;
  return TORCH_GUARD_OR_TRUE(condition) ? std::nullopt : std::optional(false);
}

// `then` where the condition holds, else `otherwise`: decided where that is known, in the graph where it is not.
c10::SymInt choose(const c10::SymBool& condition, const c10::SymInt& then, const c10::SymInt& otherwise);

c10::SymInt product(c10::SymIntArrayRef values);

// Dense strides; `order`: dimensions from the innermost to the outermost.
SymInts strides_in_order(c10::SymIntArrayRef sizes, const std::vector<std::size_t>& order);

// Of a new tensor in that format; Preserve is not one.
SymInts strides_of(c10::SymIntArrayRef sizes, c10::MemoryFormat format);

// What at::empty_like() gives: the strides of `like` where it is dense, else those nearest.
SymInts strides_like(const at::Tensor& like, c10::MemoryFormat format);

// As at::infer_dense_strides(): dense, in the order of `strides`.
SymInts dense_strides(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides);

// ChannelsLast, ChannelsLast3d or Contiguous, as Tensor::suggest_memory_format().
c10::MemoryFormat suggested_format(const at::Tensor& tensor);

// What at::TensorIterator makes of operands with these strides in the broadcast sizes; 0 where one is broadcast.
SymInts iterated_strides(const SymInts& sizes, const std::vector<SymInts>& of_operands);

// The result of at::TensorIterator for these operands: broadcast, and laid out as they are.
Layout elementwise_layout(const std::vector<at::Tensor>& operands);

}  // namespace rehearse::capture
