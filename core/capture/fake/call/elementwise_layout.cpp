// SPDX-License-Identifier: BSD-3-Clause
// Computes the strides of a result with the same steps as at::TensorIterator (ATen/native/TensorIterator.cpp in
// LibTorch).
#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ExpandUtils.h>
#include <c10/core/TensorImpl.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include "capture/fake/call/result_layout.h"

namespace rehearse::capture {
namespace {

struct Shape {
  SymInts sizes;
  bool all_equal = true;  // no operand is broadcast
};

Shape broadcast(const std::vector<at::Tensor>& operands) {
  Shape shape;
  bool first = true;
  for (const at::Tensor& operand : operands) {
    if (first) {
      shape.sizes = operand.sym_sizes().vec();
    } else if (operand.dim() != static_cast<std::int64_t>(shape.sizes.size()) ||
               !equal_ints(operand.sym_sizes(), shape.sizes)) {
      shape.all_equal = false;
      shape.sizes = at::infer_size_symint(shape.sizes, operand.sym_sizes());
    }
    first = false;
  }
  return shape;
}

bool all_in(const std::vector<at::Tensor>& operands, c10::MemoryFormat format) {
  return std::all_of(operands.begin(), operands.end(), [format](const at::Tensor& operand) {
    return holds(operand.unsafeGetTensorImpl()->sym_is_contiguous(format));
  });
}

bool same_dense_strides(const std::vector<at::Tensor>& operands) {
  const c10::SymIntArrayRef strides = operands.front().sym_strides();
  return std::all_of(operands.begin(), operands.end(), [&](const at::Tensor& operand) {
    return holds(operand.unsafeGetTensorImpl()->sym_is_non_overlapping_and_dense()) &&
           equal_ints(operand.sym_strides(), strides);
  });
}

// Strides of each operand in the broadcast shape; 0 along broadcast dimensions.
std::vector<SymInts> broadcast_strides(const std::vector<at::Tensor>& operands, const SymInts& sizes) {
  std::vector<SymInts> all;
  for (const at::Tensor& operand : operands) {
    SymInts strides(sizes.size(), c10::SymInt(0));
    const std::size_t offset = sizes.size() - static_cast<std::size_t>(operand.dim());
    for (std::size_t d = 0; d + offset < sizes.size(); ++d) {
      const bool is_one = is_known(operand.sym_sizes()[d].sym_eq(1));
      if (!is_one || is_known(sizes[d + offset].sym_eq(1))) strides[d + offset] = operand.sym_strides()[d];
    }
    all.push_back(std::move(strides));
  }
  return all;
}

// Positive: dimension `inner` must become the outer of the two. Negative: they are in order. 0: the strides do not
// decide.
int order_of(std::size_t inner, std::size_t outer, const std::vector<SymInts>& strides, const SymInts& sizes) {
  for (const SymInts& of : strides) {
    const int found = compare_dimensions(of, sizes, inner, outer);
    if (found != 0) return found;
  }
  return 0;
}

// Dimensions from the innermost to the outermost.
std::vector<std::size_t> order_of_dimensions(const std::vector<SymInts>& strides, const SymInts& sizes) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t outer = i;
    for (std::size_t inner = i; inner-- > 0;) {
      const int found = order_of(order[inner], order[outer], strides, sizes);
      if (found < 0) break;
      if (found == 0) continue;
      std::swap(order[inner], order[outer]);
      outer = inner;
    }
  }
  return order;
}

}  // namespace

bool equal_ints(c10::SymIntArrayRef left, c10::SymIntArrayRef right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const c10::SymInt& a, const c10::SymInt& b) { return holds(a.sym_eq(b)); });
}

SymInts iterated_strides(const SymInts& sizes, const std::vector<SymInts>& of_operands) {
  const std::vector<std::size_t> order = order_of_dimensions(of_operands, sizes);
  if (std::is_sorted(order.rbegin(), order.rend())) return contiguous_strides(sizes);
  return strides_in_order(sizes, order);
}

Layout elementwise_layout(const std::vector<at::Tensor>& operands) {
  Shape shape = broadcast(operands);
  SymInts sizes = std::move(shape.sizes);
  if (shape.all_equal) {
    if (all_in(operands, c10::MemoryFormat::Contiguous)) return {sizes, contiguous_strides(sizes)};
    if (sizes.size() == 4 && all_in(operands, c10::MemoryFormat::ChannelsLast)) {
      return {sizes, strides_of(sizes, c10::MemoryFormat::ChannelsLast)};
    }
    if (same_dense_strides(operands)) return {sizes, operands.front().sym_strides().vec()};
  }
  SymInts strides = iterated_strides(sizes, broadcast_strides(operands, sizes));
  return {std::move(sizes), std::move(strides)};
}

}  // namespace rehearse::capture
