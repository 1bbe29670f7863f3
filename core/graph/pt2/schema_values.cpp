// SPDX-License-Identifier: BSD-3-Clause
#include "graph/pt2/schema_values.h"

#include <limits>

#include <rehearse/graph/text.h>

#include "graph/pt2/sympy_text.h"
#include "graph/text/enum_names.h"

namespace rehearse::graph {
namespace {

template <class T>
T from_table(const Field& field, const std::vector<std::pair<std::int64_t, T>>& table, const char* what) {
  const std::int64_t code = field.integer();
  for (const auto& [known, value] : table) {
    if (known == code) return value;
  }
  field.fail(std::to_string(code) + " is no " + what + " that is known here");
}

}  // namespace

c10::ScalarType read_dtype(const Field& field) {
  static const std::vector<std::pair<std::int64_t, c10::ScalarType>> table = {{1, c10::kByte},
                                                                              {2, c10::kChar},
                                                                              {3, c10::kShort},
                                                                              {4, c10::kInt},
                                                                              {5, c10::kLong},
                                                                              {6, c10::kHalf},
                                                                              {7, c10::kFloat},
                                                                              {8, c10::kDouble},
                                                                              {9, c10::kComplexHalf},
                                                                              {10, c10::kComplexFloat},
                                                                              {11, c10::kComplexDouble},
                                                                              {12, c10::kBool},
                                                                              {13, c10::kBFloat16},
                                                                              {28, c10::kUInt16},
                                                                              {29, c10::kFloat8_e4m3fn},
                                                                              {30, c10::kFloat8_e5m2},
                                                                              {31, c10::kFloat8_e4m3fnuz},
                                                                              {32, c10::kFloat8_e5m2fnuz}};
  return from_table(field, table, "dtype");
}

c10::Layout read_layout(const Field& field) {
  static const std::vector<std::pair<std::int64_t, c10::Layout>> table = {
      {1, c10::kSparse},    {2, c10::kSparseCsr}, {3, c10::kSparseCsc}, {4, c10::kSparseBsr},
      {5, c10::kSparseBsc}, {6, c10::kMkldnn},    {7, c10::kStrided}};
  return from_table(field, table, "layout");
}

c10::MemoryFormat read_memory_format(const Field& field) {
  static const std::vector<std::pair<std::int64_t, c10::MemoryFormat>> table = {{1, c10::MemoryFormat::Contiguous},
                                                                                {2, c10::MemoryFormat::ChannelsLast},
                                                                                {3, c10::MemoryFormat::ChannelsLast3d},
                                                                                {4, c10::MemoryFormat::Preserve}};
  return from_table(field, table, "memory format");
}

c10::Device read_device(const Field& field) {
  std::string name = field["type"].text();
  if (const auto index = field.find("index")) name += ":" + std::to_string(index->integer());
  const std::optional<c10::Device> device = device_of(name);
  if (!device) field.fail("'" + name + "' is no device");
  return *device;
}

SymInt read_sym_int(const Field& field) {
  const auto [kind, value] = field.variant();
  if (kind == "as_int") return value.integer();
  if (kind == "as_expr") return SymExpr{sympy_text(value["expr_str"].text())};
  field.fail("'" + kind + "' is neither as_int nor as_expr");
}

namespace {

SymInt read_extent(const Field& field) {
  SymInt extent = read_sym_int(field);
  if (!extent.is_symbolic() && extent.number() < 0) field.fail("must not be negative, and is " + to_string(extent));
  return extent;
}

}  // namespace

TensorMeta read_tensor_meta(const Field& field) {
  TensorMeta tensor;
  for (const Field& size : field["sizes"].items()) tensor.sizes.push_back(read_extent(size));
  for (const Field& stride : field["strides"].items()) tensor.strides.push_back(read_extent(stride));
  if (tensor.sizes.size() != tensor.strides.size()) field.fail("has not as many strides as sizes");
  tensor.storage_offset = read_extent(field["storage_offset"]);
  tensor.dtype = read_dtype(field["dtype"]);
  tensor.device = read_device(field["device"]);
  tensor.layout = read_layout(field["layout"]);
  tensor.requires_grad = field["requires_grad"].boolean();
  if (bytes_reached(tensor) == std::numeric_limits<std::int64_t>::max()) field.fail("reaches beyond 63 bits of bytes");
  return tensor;
}

SymScalarMeta read_sym_scalar(const Field& field, SymScalarMeta::Kind kind) {
  const auto [form, value] = field.variant();
  if (form == "as_expr") return {kind, {sympy_text(value["expr_str"].text())}};
  if (form == "as_int") return {kind, {std::to_string(value.integer())}};
  if (form == "as_bool") return {kind, {value.boolean() ? "True" : "False"}};
  if (form == "as_float") return {kind, {to_text(value.number())}};
  field.fail("'" + form + "' is no form of a symbolic number that is known here");
}

std::optional<std::int64_t> bytes_reached(const TensorMeta& tensor) {
  if (tensor.storage_offset.is_symbolic()) return std::nullopt;
  std::int64_t elements = tensor.storage_offset.number();
  bool is_empty = false;
  bool overflows = false;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i].is_symbolic() || tensor.strides[i].is_symbolic()) return std::nullopt;
    const std::int64_t size = tensor.sizes[i].number();
    std::int64_t step = 0;
    is_empty |= size == 0;
    overflows |= size > 0 && (__builtin_mul_overflow(size - 1, tensor.strides[i].number(), &step) ||
                              __builtin_add_overflow(elements, step, &elements));
  }
  if (is_empty) return 0;
  std::int64_t bytes = 0;
  overflows |= __builtin_add_overflow(elements, 1, &elements) ||
               __builtin_mul_overflow(elements, static_cast<std::int64_t>(c10::elementSize(tensor.dtype)), &bytes);
  return overflows ? std::numeric_limits<std::int64_t>::max() : bytes;
}

}  // namespace rehearse::graph
