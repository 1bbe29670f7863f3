// SPDX-License-Identifier: BSD-3-Clause
#include "compile/parts/border_check.h"

#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/errors.h>

namespace rehearse::compiler {
namespace {

std::string text_of_grad(bool requires_grad) { return requires_grad ? "requires grad" : "requires no grad"; }

std::string text_of_sizes(const std::vector<graph::SymInt>& sizes) {
  std::vector<std::string> texts;
  for (const graph::SymInt& size : sizes) texts.push_back(graph::to_string(size));
  return fmt::format("is [{}]", fmt::join(texts, ", "));
}

}  // namespace

BorderCheck::BorderCheck(const graph::GraphModule& piece, std::string name) : name_(std::move(name)) {
  const auto placeholders = piece.graph().placeholders();
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const graph::Metadata& meta = placeholders[i]->meta();
    const graph::SymScalarMeta* scalar = meta.value ? meta.value->scalar() : nullptr;
    if (const std::string* symbol = scalar != nullptr ? scalar->expression.symbol() : nullptr) {
      symbols_.emplace(*symbol, i);
    }
    const graph::TensorMeta* tensor = meta.tensor();
    if (tensor == nullptr || tensor->is_parameter) continue;
    tensors_.push_back({i, *tensor, placeholders[i]->name(), meta.origin});
  }
}

void BorderCheck::check(const std::vector<c10::IValue>& values) const {
  for (const Expected& expected : tensors_) {
    const c10::IValue& value = values.at(expected.at);
    if (value.isTensor() && value.toTensor().defined()) check(expected, value.toTensor(), values);
  }
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
  bool same = sizes.size() == meta.sizes.size();
  for (std::size_t i = 0; same && i < sizes.size(); ++i) same = fits(meta.sizes[i], sizes[i], values);
  if (!same) fail(expected, text_of_sizes(meta.sizes), fmt::format("is [{}]", fmt::join(sizes, ", ")));
}

// Whatever is not known of the symbols fits.
bool BorderCheck::fits(const graph::SymInt& size, std::int64_t found, const std::vector<c10::IValue>& values) const {
  if (!size.is_symbolic()) return size.number() == found;
  const auto value_of = [&](const std::string& symbol) -> std::optional<std::int64_t> {
    const auto at = symbols_.find(symbol);
    if (at == symbols_.end() || !values.at(at->second).isInt()) return std::nullopt;
    return values[at->second].toInt();
  };
  const shapes::Expr* expression = size.expression().expr();
  const auto expected = expression != nullptr ? expression->evaluate(value_of) : std::nullopt;
  return !expected || *expected == found;
}

void BorderCheck::fail(const Expected& expected, const std::string& captured, const std::string& found) const {
  const std::string line = expected.origin ? expected.origin->source_line() : "";
  throw BorderMismatch(
      fmt::format("the tensor '{}'{} comes to {} of a compiled function otherwise than it was captured: it {}, and {} "
                  "now. The result would be wrong, so the call fails. Keep the code at fault out of the "
                  "function, or in an eager_region()",
                  expected.value, line.empty() ? "" : " of " + line, name_, captured, found));
}

}  // namespace rehearse::compiler
