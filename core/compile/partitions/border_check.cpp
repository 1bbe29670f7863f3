// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/border_check.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/errors.h>

namespace rehearse::compiler {
namespace {

std::string text_of_grad(bool requires_grad) { return requires_grad ? "requires grad" : "requires no grad"; }

}  // namespace

BorderCheck::BorderCheck(const graph::GraphModule& piece, std::string name, const LayoutOf& layout_of,
                         const CompiledFor& compiled_for)
    : name_(std::move(name)) {
  const auto placeholders = piece.graph().placeholders();
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const graph::Metadata& meta = placeholders[i]->meta();
    if (meta.value) symbols_.add(i, *meta.value);
    const graph::TensorMeta* tensor = meta.tensor();
    if (tensor == nullptr || tensor->is_parameter) continue;
    const graph::TensorMeta* other = compiled_for ? compiled_for(i) : nullptr;
    tensors_.push_back({i, other != nullptr ? *other : *tensor, placeholders[i]->name(), meta.origin, layout_of(i)});
  }
}

std::vector<std::size_t> BorderCheck::fit(std::vector<c10::IValue>& values) const {
  std::vector<std::size_t> copied;
  for (const Expected& expected : tensors_) {
    const c10::IValue& value = values.at(expected.at);
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    check(expected, value.toTensor(), values);
    PlaceInMemory place;
    if (expected.layout == BorderLayout::Guarded || !has_other_layout(expected, value.toTensor(), values, place))
      continue;
    values[expected.at] = copy_to(place, at::Tensor(value.toTensor()));
    copied.push_back(expected.at);
  }
  return copied;
}

void BorderCheck::check(const Expected& expected, const at::Tensor& tensor,
                        const std::vector<c10::IValue>& values) const {
  const graph::TensorMeta& meta = expected.meta;
  if (at::GradMode::is_enabled() && tensor.requires_grad() != meta.requires_grad) {
    fail(expected, text_of_grad(meta.requires_grad), text_of_grad(tensor.requires_grad()));
  }
  if (tensor.scalar_type() != meta.dtype) {
    fail(expected, std::string("is ") + c10::toString(meta.dtype),
         std::string("is ") + c10::toString(tensor.scalar_type()));
  }
  const at::IntArrayRef sizes = tensor.sizes();
  if (symbols_.fit(meta.sizes, sizes, values)) return;
  fail(expected, "is " + text_of(meta.sizes), fmt::format("is [{}]", fmt::join(sizes, ", ")));
}

bool BorderCheck::has_other_layout(const Expected& expected, const at::Tensor& tensor,
                                   const std::vector<c10::IValue>& values, PlaceInMemory& place) const {
  const PlaceInMemory wanted = place_of(expected.meta, symbols_, values);
  if (lies_at(tensor, wanted)) return false;
  if (expected.layout == BorderLayout::Required || !wanted.is_known()) {
    fail(expected, "has " + text_of(wanted), "has " + text_of(place_of(tensor)));
  }
  place = wanted;
  return true;
}

void BorderCheck::fail(const Expected& expected, const std::string& captured, const std::string& found) const {
  const std::string line = graph::source_line(expected.origin);
  throw BorderMismatch(fmt::format(
      "the tensor '{}'{} reaches {} of a compiled function in another form than at the capture: it {}, and {} "
      "now. The result would be wrong, so the call fails. Move the code that changes the tensor out of the "
      "function, or into an eager_region()",
      expected.value, line.empty() ? "" : " of " + line, name_, captured, found));
}

}  // namespace rehearse::compiler
