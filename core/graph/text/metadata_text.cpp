// SPDX-License-Identifier: BSD-3-Clause
#include "graph/text/metadata_text.h"

#include <stdexcept>

namespace rehearse::graph {
namespace {

using SymKind = SymScalarMeta::Kind;

Argument to_argument(const SymInt& value) {
  return value.is_symbolic() ? Argument(value.expression()) : Argument(value.number());
}

Argument to_argument(const std::vector<SymInt>& values) {
  List list;
  for (const SymInt& value : values) list.push_back(to_argument(value));
  return list;
}

const char* sym_kind_name(SymKind kind) {
  return kind == SymKind::Int ? "sym_int" : kind == SymKind::Float ? "sym_float" : "sym_bool";
}

Argument to_argument(const ValueMeta& value) {
  if (const TensorMeta* tensor = value.tensor()) return to_dict(*tensor);
  if (const SymScalarMeta* scalar = value.scalar()) return Dict{{sym_kind_name(scalar->kind), scalar->expression}};
  if (const ValueMeta::List* items = value.list()) {
    List list;
    for (const ValueMeta& item : *items) list.push_back(to_argument(item));
    return list;
  }
  return {};
}

[[noreturn]] void fail(const std::string& key, const std::string& message) {
  throw std::invalid_argument("\"" + key + "\" " + message);
}

template <class T>
const T& get(const std::string& key, const Argument& value, const char* what) {
  const T* found = value.get_if<T>();
  if (found == nullptr) fail(key, std::string("must be ") + what);
  return *found;
}

SymInt sym_int_from(const std::string& key, const Argument& value) {
  if (const auto* expression = value.get_if<SymExpr>()) return *expression;
  return get<std::int64_t>(key, value, "a number or sym(...)");
}

std::vector<SymInt> sym_ints_from(const std::string& key, const Argument& value) {
  std::vector<SymInt> values;
  for (const Argument& item : get<List>(key, value, "a list")) values.push_back(sym_int_from(key, item));
  return values;
}

ValueMeta value_from(const std::string& key, const Argument& value) {
  if (value.is_none()) return {};
  if (const List* list = value.get_if<List>()) {
    ValueMeta::List items;
    for (const Argument& item : *list) items.push_back(value_from(key, item));
    return items;
  }
  const Dict& dict = get<Dict>(key, value, "a dict, a list or none");
  for (const SymKind kind : {SymKind::Int, SymKind::Float, SymKind::Bool}) {
    if (dict.size() == 1 && dict[0].first == sym_kind_name(kind)) {
      return SymScalarMeta{kind, get<SymExpr>(dict[0].first, dict[0].second, "sym(...)")};
    }
  }
  return tensor_from(dict);
}

Origin origin_from(const Dict& dict) {
  Origin origin;
  for (const auto& [key, value] : dict) {
    if (key == "label") origin.label.emplace();
    std::string* field = key == "stack_trace"       ? &origin.stack_trace
                         : key == "nn_module_stack" ? &origin.nn_module_stack
                         : key == "torch_fn"        ? &origin.torch_fn
                         : key == "label"           ? &*origin.label
                                                    : nullptr;
    if (field == nullptr) fail(key, "is no key of an origin");
    *field = get<std::string>(key, value, "a string");
  }
  return origin;
}

}  // namespace

Dict to_dict(const TensorMeta& tensor) {
  const TensorMeta defaults;
  Dict dict = {{"dtype", tensor.dtype}, {"sizes", to_argument(tensor.sizes)}, {"strides", to_argument(tensor.strides)}};
  if (!(tensor.storage_offset == defaults.storage_offset))
    dict.emplace_back("offset", to_argument(tensor.storage_offset));
  if (tensor.device != defaults.device) dict.emplace_back("device", tensor.device);
  if (tensor.layout != defaults.layout) dict.emplace_back("layout", tensor.layout);
  if (tensor.requires_grad) dict.emplace_back("requires_grad", true);
  if (tensor.is_parameter) dict.emplace_back("is_parameter", true);
  if (tensor.is_conj) dict.emplace_back("is_conj", true);
  if (tensor.is_neg) dict.emplace_back("is_neg", true);
  if (tensor.storage_nbytes) dict.emplace_back("storage_nbytes", to_argument(*tensor.storage_nbytes));
  return dict;
}

TensorMeta tensor_from(const Dict& dict) {
  TensorMeta tensor;
  for (const auto& [key, value] : dict) {
    if (key == "dtype") {
      tensor.dtype = get<c10::ScalarType>(key, value, "dtype(...)");
    } else if (key == "sizes") {
      tensor.sizes = sym_ints_from(key, value);
    } else if (key == "strides") {
      tensor.strides = sym_ints_from(key, value);
    } else if (key == "offset") {
      tensor.storage_offset = sym_int_from(key, value);
    } else if (key == "device") {
      tensor.device = get<c10::Device>(key, value, "device(...)");
    } else if (key == "layout") {
      tensor.layout = get<c10::Layout>(key, value, "layout(...)");
    } else if (key == "requires_grad") {
      tensor.requires_grad = get<bool>(key, value, "true or false");
    } else if (key == "is_parameter") {
      tensor.is_parameter = get<bool>(key, value, "true or false");
    } else if (key == "is_conj") {
      tensor.is_conj = get<bool>(key, value, "true or false");
    } else if (key == "is_neg") {
      tensor.is_neg = get<bool>(key, value, "true or false");
    } else if (key == "storage_nbytes") {
      tensor.storage_nbytes = sym_int_from(key, value);
    } else {
      fail(key, "is no key of a tensor");
    }
  }
  return tensor;
}

Dict to_dict(const Metadata& meta, Origins origins) {
  Dict dict;
  if (meta.value) dict.emplace_back("value", to_argument(*meta.value));
  if (!meta.unbacked_bindings.empty()) {
    List symbols;
    for (const std::string& symbol : meta.unbacked_bindings) symbols.emplace_back(symbol);
    dict.emplace_back("unbacked_bindings", std::move(symbols));
  }
  if (meta.ddp_ignored) dict.emplace_back("ddp_ignored", true);
  if (meta.origin && origins == Origins::With) {
    Dict origin = {{"stack_trace", meta.origin->trace()},
                   {"nn_module_stack", meta.origin->nn_module_stack},
                   {"torch_fn", meta.origin->torch_fn}};
    if (meta.origin->label) origin.emplace_back("label", *meta.origin->label);
    dict.emplace_back("origin", std::move(origin));
  }
  return dict;
}

Metadata metadata_from(const Dict& dict) {
  Metadata meta;
  for (const auto& [key, value] : dict) {
    if (key == "value") {
      meta.set_value(value_from(key, value));
    } else if (key == "unbacked_bindings") {
      for (const Argument& symbol : get<List>(key, value, "a list")) {
        meta.unbacked_bindings.push_back(get<std::string>(key, symbol, "a list of strings"));
      }
    } else if (key == "ddp_ignored") {
      meta.ddp_ignored = get<bool>(key, value, "true or false");
    } else if (key == "origin") {
      meta.set_origin(origin_from(get<Dict>(key, value, "a dict")));
    } else {
      fail(key, "is no key of a node's metadata");
    }
  }
  return meta;
}

}  // namespace rehearse::graph
