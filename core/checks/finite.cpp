// SPDX-License-Identifier: BSD-3-Clause
#include "checks/finite.h"

#include <fmt/format.h>

#include <rehearse_internal/checks/non_finite.h>

namespace rehearse::checks {

std::optional<NonFinite> first_non_finite(const ModelState& state, std::optional<bool> buffers, int rank,
                                          const std::string& name, std::uint64_t number) {
  const auto finding_of = [&](const std::string& what, const at::Tensor& tensor) {
    const auto of = name == kFinite ? "" : fmt::format(" of \"{}\"", name);
    return NonFinite{
        {fmt::format("{} of rank {} is not finite in check #{}{}: {}", what, rank, number, of, non_finite_text(tensor)),
         {rank},
         {}},
        tensor};
  };
  const auto looked_at = state.with_buffers(buffers.value_or(true));
  for (const auto& each : looked_at.tensors()) {
    const bool only_nan = each.is_buffer && !buffers;
    if (only_nan ? has_nan(each.tensor) : has_non_finite(each.tensor))
      return finding_of(fmt::format("\"{}\"", each.name), each.tensor);
  }
  for (const auto& each : looked_at.tensors()) {
    if (!each.tensor.defined() || !each.tensor.is_leaf() || !each.tensor.requires_grad()) continue;
    const auto gradient = each.tensor.grad();
    if (has_non_finite(gradient)) return finding_of(fmt::format("the gradient of \"{}\"", each.name), gradient);
  }
  return std::nullopt;
}

}  // namespace rehearse::checks
