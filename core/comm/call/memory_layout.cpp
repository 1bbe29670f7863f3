// SPDX-License-Identifier: BSD-3-Clause
#include "memory_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::comm {
namespace {

bool counts_as_contiguous(const at::Tensor& tensor) {
  return tensor.is_contiguous() || !tensor.is_non_overlapping_and_dense();
}

}  // namespace

const at::Tensor* moved_as_it_lies(const Operation& call) noexcept {
  if (call.type == c10d::OpType::ALLREDUCE && call.tag == Operation::kCopied) return nullptr;
  const auto tensors = op_row(call.type).as_it_lies;
  if (tensors == OpTensors::none) return nullptr;
  return tensors == OpTensors::outputs ? &call.outputs[0] : &call.inputs[0];
}

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  const bool plain = counts_as_contiguous(a);
  if (plain || counts_as_contiguous(b)) return plain && counts_as_contiguous(b);
  return telling_strides(a) == telling_strides(b);
}

bool same_format(const at::Tensor& a, const at::Tensor& b) {
  for (const auto format :
       {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast3d}) {
    if (a.is_contiguous(format) && b.is_contiguous(format)) return true;
  }
  return a.numel() == 0 || b.numel() == 0;
}

c10::SmallVector<std::int64_t, 5> telling_strides(const at::Tensor& tensor) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  c10::SmallVector<std::int64_t, 5> telling(strides.begin(), strides.end());
  std::int64_t contiguous = 1;
  for (std::size_t d = sizes.size(); d-- > 0; contiguous *= sizes[d]) {
    if (sizes[d] == 1 || tensor.is_contiguous()) telling[d] = contiguous;
  }
  return telling;
}

const at::Tensor* tensor_laid_out(const Operation& call) noexcept {
  const at::Tensor* const tensor = moved_as_it_lies(call);
  return tensor != nullptr && !counts_as_contiguous(*tensor) ? tensor : nullptr;
}

std::string strides_text(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(telling_strides(tensor), ", "));
}

std::string layout_text(const at::Tensor& tensor) {
  return fmt::format("sizes [{}] and strides [{}]", fmt::join(tensor.sizes(), ", "), fmt::join(tensor.strides(), ", "));
}

}  // namespace rehearse::comm
