// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/call/result_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <c10/core/TensorImpl.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::capture {

int compare_dimensions(c10::SymIntArrayRef strides, c10::SymIntArrayRef sizes, std::size_t inner, std::size_t outer) {
  const auto holds_for_sizes = [](const c10::SymBool& condition) {
    return shapes::guard_size_oblivious_or_false(condition, "compare_dimensions");
  };
  if (is_known(strides[inner].sym_eq(0)) || is_known(strides[outer].sym_eq(0))) return 0;
  if (holds_for_sizes(strides[inner].sym_lt(strides[outer]))) return -1;
  if (holds_for_sizes(strides[inner].sym_gt(strides[outer]))) return 1;
  return holds_for_sizes(sizes[inner].sym_gt(sizes[outer])) ? 1 : 0;
}

c10::SymInt choose(const c10::SymBool& condition, const c10::SymInt& then, const c10::SymInt& otherwise) {
  if (const auto known = condition.maybe_as_bool()) return *known ? then : otherwise;
  const c10::SymNode node = condition.toSymNodeImpl();
  return c10::SymInt(node->sym_ite(then.wrap_node(node), otherwise.wrap_node(node)));
}

c10::SymInt product(c10::SymIntArrayRef values) {
  c10::SymInt result = 1;
  for (const c10::SymInt& value : values) result = result * value;
  return result;
}

SymInts strides_in_order(c10::SymIntArrayRef sizes, const std::vector<std::size_t>& order) {
  SymInts strides(sizes.size(), c10::SymInt(1));
  c10::SymInt step = 1;
  for (const std::size_t d : order) {
    strides[d] = step;
    step = step * sizes[d];
  }
  return strides;
}

SymInts strides_of(c10::SymIntArrayRef sizes, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast) {
    TORCH_CHECK(sizes.size() == 4, "required rank 4 tensor to use channels_last format");
    return strides_in_order(sizes, {1, 3, 2, 0});
  }
  if (format == c10::MemoryFormat::ChannelsLast3d) {
    TORCH_CHECK(sizes.size() == 5, "required rank 5 tensor to use channels_last_3d format");
    return strides_in_order(sizes, {1, 4, 3, 2, 0});
  }
  return contiguous_strides(sizes);
}

SymInts dense_strides(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (std::size_t i = 1; i < order.size(); ++i) {  // insertion sort, as in LibTorch: keeps the order of ties
    for (std::size_t at = i; at-- > 0;) {
      const int order_now = compare_dimensions(strides, sizes, order[at], order[at + 1]);
      if (order_now < 0) break;
      if (order_now > 0) std::swap(order[at], order[at + 1]);
    }
  }
  SymInts result(sizes.size(), c10::SymInt(1));
  c10::SymInt step = 1;
  for (const std::size_t d : order) {
    result[d] = step;
    if (!is_known(sizes[d].sym_le(1))) step = step * sizes[d];
  }
  return result;
}

SymInts strides_like(const at::Tensor& like, c10::MemoryFormat format) {
  if (format != c10::MemoryFormat::Preserve) return strides_of(like.sym_sizes(), format);
  if (holds(like.unsafeGetTensorImpl()->sym_is_non_overlapping_and_dense())) return like.sym_strides().vec();
  return dense_strides(like.sym_sizes(), like.sym_strides());
}

c10::MemoryFormat suggested_format(const at::Tensor& tensor) { return tensor.suggest_memory_format(); }

}  // namespace rehearse::capture
