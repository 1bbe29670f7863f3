// SPDX-License-Identifier: BSD-3-Clause
#include "core/graph/check/metadata_check.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "graph/ir/targets.h"

namespace rehearse::graph {

MetadataCheck::MetadataCheck(const Graph& graph, Add add) : add_(std::move(add)) {
  for (const Node& node : graph) binds_symbols_ |= !node.meta().unbacked_bindings.empty();
}

void MetadataCheck::check(const Node& node) {
  for (const std::string& symbol : node.meta().unbacked_bindings) {
    if (!bound_.insert(symbol).second) add_("meta.unbacked_bindings", symbol + " is bound before");
  }
  if (node.meta().value == nullptr) return;
  const ValueMeta& value = *node.meta().value;
  check_value(value, "meta.value");
  check_symbols(node, value);
  check_item(node, value);
}

void MetadataCheck::check_value(const ValueMeta& value, const std::string& field) const {
  if (const TensorMeta* tensor = value.tensor()) return check_tensor(*tensor, field);
  const ValueMeta::List* items = value.list();
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
    check_value((*items)[i], field + "[" + std::to_string(i) + "]");
  }
}

void MetadataCheck::check_tensor(const TensorMeta& tensor, const std::string& field) const {
  if (tensor.sizes.size() != tensor.strides.size() && tensor.layout == c10::Layout::Strided) {
    add_(field, "has " + std::to_string(tensor.sizes.size()) + " sizes and " + std::to_string(tensor.strides.size()) +
                    " strides");
  }
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i)
    check_size(tensor.sizes[i], field + ".sizes[" + std::to_string(i) + "]");
}

void MetadataCheck::check_size(const SymInt& size, const std::string& field) const {
  if (!size.is_symbolic()) {
    if (size.number() < 0) add_(field, "is " + to_string(size) + ", less than 0");
    return;
  }
  if (size.expression().symbols().empty()) {
    add_(field, "'" + size.expression().text() + "' is neither a number nor has it symbols");
  }
}

// A placeholder binds the symbols of its own value.
void MetadataCheck::check_symbols(const Node& node, const ValueMeta& value) {
  if (!binds_symbols_) return;
  for (const std::string& symbol : free_symbols(value)) {
    if (!shapes::is_unbacked_name(symbol)) continue;
    if (node.op() == Op::Placeholder) bound_.insert(symbol);
    if (!bound_.contains(symbol)) add_("meta.value", "no node before it binds " + symbol);
  }
}

void MetadataCheck::check_item(const Node& node, const ValueMeta& value) const {
  if (node.target() != kGetItem || node.args().size() != 2) return;
  const Node* source = node.args()[0].node();
  const auto* index = node.args()[1].get_if<std::int64_t>();
  const ValueMeta::List* items = source != nullptr && source->meta().value ? source->meta().value->list() : nullptr;
  if (items == nullptr || index == nullptr) return;
  const std::int64_t count = static_cast<std::int64_t>(items->size());
  if (*index >= count || *index < -count) {
    add_("args[1]",
         std::to_string(*index) + " is out of range: '" + source->name() + "' has " + std::to_string(count) + " items");
  } else if (!((*items)[static_cast<std::size_t>(*index < 0 ? *index + count : *index)] == value)) {
    add_("meta.value", "is not what '" + source->name() + "' says of its item " + std::to_string(*index));
  }
}

}  // namespace rehearse::graph
