// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/layout_fit.h"

#include <algorithm>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::compiler {

void SymbolSources::add(std::size_t at, const graph::ValueMeta& meta) {
  if (const graph::SymScalarMeta* scalar = meta.scalar()) {
    const std::string* symbol = scalar->expression.symbol();
    if (symbol != nullptr) sources_[*symbol].insert(sources_[*symbol].begin(), {at});
  }
  const graph::TensorMeta* tensor = meta.tensor();
  for (std::size_t i = 0; tensor != nullptr && i < tensor->sizes.size(); ++i) {
    if (!tensor->sizes[i].is_symbolic()) continue;
    if (const std::string* symbol = tensor->sizes[i].expression().symbol()) sources_[*symbol].push_back({at, i});
  }
}

std::optional<std::int64_t> SymbolSources::find(const std::string& symbol,
                                                const std::vector<c10::IValue>& values) const {
  const auto sources = sources_.find(symbol);
  if (sources == sources_.end()) return std::nullopt;
  for (const Source& source : sources->second) {
    if (source.at >= values.size()) continue;
    const c10::IValue& value = values[source.at];
    if (!source.dimension && value.isInt()) return value.toInt();
    const bool is_tensor = source.dimension && value.isTensor() && value.toTensor().defined();
    if (is_tensor && *source.dimension < value.toTensor().sizes().size()) {
      return value.toTensor().sizes()[*source.dimension];
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> SymbolSources::evaluate(const graph::SymInt& number,
                                                    const std::vector<c10::IValue>& values) const {
  if (!number.is_symbolic()) return number.number();
  const shapes::Expr* expression = number.expression().expr();
  if (expression == nullptr) return std::nullopt;
  return expression->evaluate([&](const std::string& symbol) { return find(symbol, values); });
}

std::set<std::size_t> SymbolSources::inputs_for(const graph::TensorMeta& meta) const {
  std::set<std::size_t> inputs;
  for (const std::string& symbol : graph::free_symbols(meta)) {
    const auto sources = sources_.find(symbol);
    if (sources == sources_.end()) continue;
    for (const Source& source : sources->second) inputs.insert(source.at);
  }
  return inputs;
}

bool SymbolSources::fit(const std::vector<graph::SymInt>& sizes, at::IntArrayRef found,
                        const std::vector<c10::IValue>& values) const {
  bool same = sizes.size() == found.size();
  for (std::size_t i = 0; same && i < found.size(); ++i) {
    same = evaluate(sizes[i], values).value_or(found[i]) == found[i];
  }
  return same;
}

bool SymbolSources::tell_layout_of(const graph::TensorMeta& meta) const {
  graph::TensorMeta layout{.sizes = meta.strides, .storage_offset = meta.storage_offset};
  const std::vector<std::string> symbols = graph::free_symbols(graph::ValueMeta(std::move(layout)));
  return std::ranges::all_of(symbols, [&](const std::string& each) { return sources_.contains(each); });
}

bool PlaceInMemory::is_known() const {
  return offset != kUnknown && std::ranges::find(strides, kUnknown) == strides.end();
}

std::string text_of(const std::vector<graph::SymInt>& numbers) {
  std::vector<std::string> texts;
  for (const graph::SymInt& number : numbers) texts.push_back(graph::to_string(number));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string text_of(const PlaceInMemory& place) {
  return fmt::format("strides [{}] from {} on", fmt::join(place.strides, ", "), place.offset);
}

PlaceInMemory place_of(const at::Tensor& tensor) { return {tensor.strides().vec(), tensor.storage_offset()}; }

PlaceInMemory place_of(const graph::TensorMeta& meta, const SymbolSources& symbols,
                       const std::vector<c10::IValue>& values) {
  PlaceInMemory place;
  for (const graph::SymInt& stride : meta.strides) {
    place.strides.push_back(symbols.evaluate(stride, values).value_or(PlaceInMemory::kUnknown));
  }
  place.offset = symbols.evaluate(meta.storage_offset, values).value_or(PlaceInMemory::kUnknown);
  return place;
}

bool lies_at(const at::Tensor& tensor, const PlaceInMemory& place) {
  if (tensor.numel() == 0) return true;
  const auto differs = [](std::int64_t wanted, std::int64_t found) {
    return wanted != PlaceInMemory::kUnknown && wanted != found;
  };
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  if (strides.size() != place.strides.size() || differs(place.offset, tensor.storage_offset())) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && differs(place.strides[i], strides[i])) return false;
  }
  return true;
}

at::Tensor copy_to(const PlaceInMemory& place, const at::Tensor& tensor) {
  // Keeps LibTorch's conjugate and negative bits.
  if (tensor.is_conj()) return copy_to(place, tensor.conj()).conj();
  if (tensor.is_neg()) return copy_to(place, tensor._neg_view())._neg_view();
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  at::Tensor first = tensor;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (place.strides[i] != 0 || sizes[i] <= 1) continue;
    first = first.narrow(static_cast<std::int64_t>(i), 0, 1);
    sizes[i] = 1;
  }
  at::Tensor copy;
  {
    const at::AutoDispatchBelowADInplaceOrView no_view;
    const std::size_t bytes = at::detail::computeStorageNbytes(sizes, place.strides, tensor.itemsize(),
                                                               static_cast<std::size_t>(place.offset));
    const auto elements = static_cast<std::int64_t>(bytes / tensor.itemsize());
    copy = at::empty({elements}, tensor.options()).as_strided(sizes, place.strides, place.offset);
  }
  {
    const at::AutoGradMode with_history(tensor.grad_fn() != nullptr);
    copy.copy_(first);
    if (copy.sizes() != tensor.sizes()) copy = copy.expand(tensor.sizes());
  }
  // Without grad mode, a view of a tensor that requires grad also requires grad, but has no history.
  if (tensor.requires_grad() && !copy.requires_grad()) copy.set_requires_grad(true);
  return copy;
}

}  // namespace rehearse::compiler
