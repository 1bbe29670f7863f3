// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/graph/structural_hash.h>

#include <bit>
#include <string_view>
#include <unordered_map>

#include <rehearse_internal/hash/fnv1a.h>

#include "graph/ir/submodules.h"

namespace rehearse::graph {
namespace {

using Known = std::unordered_map<const GraphModule*, std::uint64_t>;  // hashes of the modules found so far

// Each item is preceded by its kind, length or number, so that different sequences of items never produce the same
// bytes. A submodule contributes its own hash, so a shared submodule is walked once.
class Hasher {
 public:
  static std::uint64_t hash_of(const GraphModule& module, Known& known, Placeholders placeholders) {
    const auto found = known.find(&module);
    if (found != known.end()) return found->second;
    Hasher hasher;
    hasher.placeholders_ = placeholders;
    hasher.add(module, known);
    return known[&module] = hasher.hash_.value();
  }

 private:
  using Positions = std::unordered_map<const Node*, std::uint64_t>;

  void add_byte(unsigned char byte) { hash_.add_byte(byte); }
  void add_number(std::uint64_t number) { hash_.add_number(number); }
  void add_text(std::string_view text) {
    add_number(text.size());
    hash_.add(text);
  }

  void add(const GraphModule& module, Known& known) {
    add_text(module.type());
    Positions positions;
    for (const Node& node : module.graph()) positions.emplace(&node, positions.size());
    add_number(positions.size());
    for (const Node& node : module.graph()) add(node, positions);
    add_number(module.attributes().size());
    for (const auto& [name, attribute] : module.attributes()) {
      add_text(name);
      add(attribute.meta);
    }
    add_number(module.submodules().size());
    for (const auto& [name, submodule] : module.submodules()) {
      add_text(name);
      add_number(hash_of(*submodule, known, placeholders_));
    }
  }

  void add(const Node& node, const Positions& positions) {
    add_number(static_cast<std::uint64_t>(node.op()));
    add(node.args(), positions);
    add(node.kwargs(), positions);
    if (node.op() != Op::Placeholder) return add_text(node.target());
    if (placeholders_ == Placeholders::OfAnyForm) return;
    const TensorMeta* tensor = node.meta().tensor();
    add_byte(tensor != nullptr ? 1 : 0);
    if (tensor != nullptr) add(*tensor);
  }

  void add(const TensorMeta& tensor) {
    add_number(static_cast<std::uint64_t>(tensor.dtype));
    for (const auto* list : {&tensor.sizes, &tensor.strides}) {
      add_number(list->size());
      for (const SymInt& size : *list) {
        add_byte(size.is_symbolic() ? 1 : 0);
        add_text(to_string(size));
      }
    }
  }

  void add(const List& list, const Positions& positions) {
    add_number(list.size());
    for (const Argument& item : list) add(item, positions);
  }

  void add(const Dict& dict, const Positions& positions) {
    add_number(dict.size());
    for (const auto& [key, item] : dict) {
      add_text(key);
      add(item, positions);
    }
  }

  void add(const Argument& argument, const Positions& positions) {
    add_byte(static_cast<unsigned char>(argument.value().index()));
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (std::is_same_v<T, Node*>) {
            add_number(positions.at(value));
          } else if constexpr (std::is_same_v<T, double>) {
            add_number(std::bit_cast<std::uint64_t>(value));
          } else if constexpr (std::is_same_v<T, std::complex<double>>) {
            add_number(std::bit_cast<std::uint64_t>(value.real()));
            add_number(std::bit_cast<std::uint64_t>(value.imag()));
          } else if constexpr (std::is_same_v<T, std::string>) {
            add_text(value);
          } else if constexpr (std::is_same_v<T, SymExpr>) {
            add_text(value.text());
          } else if constexpr (std::is_same_v<T, c10::Device>) {
            add_text(value.str());
          } else if constexpr (std::is_same_v<T, List> || std::is_same_v<T, Dict>) {
            add(value, positions);
          } else if constexpr (std::is_same_v<T, Slice>) {
            add(value.bounds(), positions);
          } else if constexpr (!std::is_same_v<T, std::monostate> && !std::is_same_v<T, Ellipsis>) {
            add_number(static_cast<std::uint64_t>(value));
          }
        },
        argument.value());
  }

  Fnv1a hash_;
  Placeholders placeholders_ = Placeholders::WithForms;
};

}  // namespace

std::uint64_t structural_hash(const GraphModule& module, Placeholders placeholders) {
  check_nesting(module);
  Known known;
  return Hasher::hash_of(module, known, placeholders);
}

}  // namespace rehearse::graph
