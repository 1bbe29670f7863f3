// SPDX-License-Identifier: BSD-3-Clause
#include <functional>

#include "graph/ir/submodules.h"
#include "graph/pt2/graph_importer.h"
#include "graph/pt2/schema_values.h"

namespace rehearse::graph {
namespace {

List list_of(const Field& items, const std::function<Argument(const Field&)>& read) {
  List list;
  for (const Field& item : items.items()) list.push_back(read(item));
  return list;
}

Argument integer(const Field& field) { return field.integer(); }
Argument number(const Field& field) { return field.number(); }
Argument boolean(const Field& field) { return field.boolean(); }
Argument text(const Field& field) { return field.text(); }

}  // namespace

// Reads an Argument as schema.py defines it.
Argument GraphImporter::argument(const Field& field) {
  const auto [kind, value] = field.variant();
  if (kind == "as_none") return {};
  if (kind == "as_graph") return body(value);
  if (kind == "as_string_to_argument") {
    Dict dict;
    for (const auto& [key, item] : value.entries()) dict.emplace_back(key, argument(item));
    return dict;
  }
  if (Argument found = node_argument(kind, value); !found.is_none()) return found;
  if (kind == "as_optional_tensor") return argument(value);
  if (Argument found = list_argument(kind, value); !found.is_none()) return found;
  if (Argument found = constant_argument(kind, value); !found.is_none()) return found;
  field.fail("'" + kind + "' is no kind of argument that is known here");
}

// Reads a tensor or symbolic number of the graph, or the constant in place of such a number. Returns None for other
// kinds.
Argument GraphImporter::node_argument(const std::string& kind, const Field& field) {
  if (kind == "as_tensor") return value(field["name"]);
  if (kind != "as_sym_int" && kind != "as_sym_float" && kind != "as_sym_bool" && kind != "as_name") return {};
  if (kind == "as_name") return value(field);
  const auto [form, inner] = field.variant();
  return form == "as_name" ? Argument(value(inner)) : constant_argument(form, inner);
}

Argument GraphImporter::list_argument(const std::string& kind, const Field& field) {
  const auto any = [this](const Field& item) { return argument(item); };
  const auto tensor = [this](const Field& item) -> Argument { return value(item["name"]); };
  if (kind == "as_tensors") return list_of(field, tensor);
  if (kind == "as_nested_tensors") {
    return list_of(field, [&](const Field& items) -> Argument { return list_of(items, tensor); });
  }
  if (kind == "as_optional_tensors") return list_of(field, any);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") return list_of(field, any);
  if (kind == "as_ints") return list_of(field, integer);
  if (kind == "as_floats") return list_of(field, number);
  if (kind == "as_bools") return list_of(field, boolean);
  if (kind == "as_strings") return list_of(field, text);
  if (kind == "as_int_lists") {
    return list_of(field, [](const Field& items) -> Argument { return list_of(items, integer); });
  }
  return {};
}

Argument GraphImporter::constant_argument(const std::string& kind, const Field& field) {
  if (kind == "as_int") return field.integer();
  if (kind == "as_float") return field.number();
  if (kind == "as_bool") return field.boolean();
  if (kind == "as_string") return field.text();
  if (kind == "as_scalar_type") return read_dtype(field);
  if (kind == "as_layout") return read_layout(field);
  if (kind == "as_memory_format") return read_memory_format(field);
  if (kind == "as_device") return read_device(field);
  if (kind == "as_complex") return std::complex<double>(field["real"].number(), field["imag"].number());
  return {};
}

// Reads the body of a higher-order operator: adds a submodule, and the attribute node for it.
Argument GraphImporter::body(const Field& field) {
  const std::string name = field["name"].text();
  auto submodule = std::make_shared<GraphModule>();
  GraphImporter(*submodule, field["graph"], {}).run();
  const std::string target = free_name(module_, name);
  module_.set_submodule(target, std::move(submodule));
  return module_.graph().get_attr(target, target);
}

}  // namespace rehearse::graph
