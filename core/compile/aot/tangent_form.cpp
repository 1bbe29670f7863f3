// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/tangent_form.h"

#include <algorithm>

#include <rehearse_internal/capture/fake_tensor.h>

namespace rehearse::compiler {

std::vector<std::int64_t> strides_of(const capture::TangentForm& form, at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 0);
  std::int64_t stride = 1;
  for (auto dim = form.dim_order.rbegin(); dim != form.dim_order.rend(); ++dim) {
    const auto index = static_cast<std::size_t>(*dim);
    if (!form.expanded.empty() && form.expanded[index]) continue;
    strides[index] = stride;
    stride *= std::max<std::int64_t>(sizes[index], 1);
  }
  return strides;
}

bool has_form(const at::Tensor& tensor, const capture::TangentForm& form) {
  if (tensor.numel() == 0) return true;
  const auto strides = strides_of(form, tensor.sizes());
  for (std::size_t dim = 0; dim < strides.size(); ++dim) {
    if (tensor.sizes()[dim] != 1 && tensor.strides()[dim] != strides[dim]) return false;
  }
  return true;
}

std::optional<capture::TangentForm> form_of(const at::Tensor& tensor) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  capture::TangentForm form{.dim_order = capture::outermost_first(strides)};
  form.expanded.resize(sizes.size());
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) form.expanded[dim] = strides[dim] == 0 && sizes[dim] != 1;
  if (std::find(form.expanded.begin(), form.expanded.end(), true) == form.expanded.end()) form.expanded.clear();
  return has_form(tensor, form) ? std::optional(std::move(form)) : std::nullopt;
}

}  // namespace rehearse::compiler
