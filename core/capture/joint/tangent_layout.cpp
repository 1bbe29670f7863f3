// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/tangent_layout.h"

#include <numeric>
#include <optional>

#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::capture {
namespace {

// Strides as numbers; nothing if a symbol has no hint.
std::optional<std::vector<std::int64_t>> stride_hints(const TensorSpec& spec, const shapes::ShapeEnv* shapes) {
  std::vector<std::int64_t> hints;
  for (const c10::SymInt& stride : spec.strides) {
    const shapes::Expr expr = shapes::expr_of(stride);
    const auto hint = expr.is_number() ? std::optional(expr.number()) : shapes ? shapes->hint(expr) : std::nullopt;
    if (!hint) return std::nullopt;
    hints.push_back(*hint);
  }
  return hints;
}

}  // namespace

TangentForm usual_form(const at::Tensor& result, const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  const auto hints = stride_hints(spec_of(result), shapes.get());
  if (hints) return {.dim_order = outermost_first(*hints)};
  TangentForm row_by_row{.dim_order = std::vector<std::int64_t>(static_cast<std::size_t>(result.dim()))};
  std::iota(row_by_row.dim_order.begin(), row_by_row.dim_order.end(), 0);
  return row_by_row;
}

TensorSpec tangent_spec(const at::Tensor& result, const TangentForm& form) {
  TensorSpec spec = spec_of(result);
  const auto is_expanded = [&](std::int64_t dim) {
    return !form.expanded.empty() && form.expanded[static_cast<std::size_t>(dim)];
  };
  std::vector<c10::SymInt> sizes;
  for (const std::int64_t dim : form.dim_order) {
    sizes.push_back(is_expanded(dim) ? c10::SymInt(1) : spec.sizes[static_cast<std::size_t>(dim)]);
  }
  const std::vector<c10::SymInt> strides = contiguous_strides(sizes);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::int64_t dim = form.dim_order[i];
    spec.strides[static_cast<std::size_t>(dim)] = is_expanded(dim) ? c10::SymInt(0) : strides[i];
  }
  spec.storage_offset = 0;
  spec.requires_grad = false;
  return spec;
}

}  // namespace rehearse::capture
