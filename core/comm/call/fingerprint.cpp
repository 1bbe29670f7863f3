// SPDX-License-Identifier: BSD-3-Clause
#include "fingerprint.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "label.h"
#include "memory_layout.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;

std::string shape_text(const at::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")); }

std::string shapes_text(std::span<const at::Tensor> tensors) {
  if (tensors.size() == 1) return shape_text(tensors.front());
  bool alike = true;
  for (const auto& tensor : tensors) alike = alike && tensor.sizes() == tensors.front().sizes();
  if (alike && !tensors.empty()) return fmt::format("{} x {}", tensors.size(), shape_text(tensors.front()));
  std::string text = "(";
  for (const auto& tensor : tensors) text += (text.size() > 1 ? ", " : "") + shape_text(tensor);
  return text + ")";
}

std::string label_text(const Operation& call) {
  const auto label = label_of(call);
  return label.empty() ? label : fmt::format("\"{}\"", label);
}

std::string device_text(const at::Tensor& tensor) { return c10::DeviceTypeName(tensor.device().type(), true); }

std::string sparse_text(std::span<const at::Tensor> tensors) {
  return !tensors.empty() && tensors.front().is_sparse() ? std::to_string(sparse_dims(tensors.front())) : "";
}

// The names and values of the fields in which two calls must agree, the most telling first. Leaves out strides, and the
// fields of the parts of a coalesced call. An empty value means that the call does not have the field.
std::vector<std::pair<const char*, std::string>> shared_fields(const Operation& call) {
  const auto tensors = shared_tensors(call);
  const bool sized = !is_alltoall(call.type) && !tensors.empty();
  const auto factor = premul_factor(call);
  const bool reduces = call.reduce_op != c10d::ReduceOp::UNUSED;
  // A call coalesced by hand may match one that another rank made with a coalescing function of c10d.
  const auto name = call.type == OpType::COALESCED ? name_of(call.type) : name_of(call);
  std::vector<std::pair<const char*, std::string>> fields = {
      {"op", std::string(name)},
      {"operations", call.parts.empty() ? "" : std::to_string(call.parts.size())},
      {"shape", sized ? shapes_text(tensors) : ""},
      {"sparse_dim", sparse_text(tensors)},
      {"dtype", tensors.empty() ? "" : dtype_text(tensors.front().scalar_type())},
      {"device", tensors.empty() ? "" : device_text(tensors.front())}};
  for (const AgreedNumber& number : kAgreedNumbers) {
    const int value = call.*number.value;
    fields.emplace_back(number.name, value >= 0 ? std::to_string(value) : "");
  }
  fields.emplace_back("reduce_op", reduces ? std::string(name_of(call.reduce_op)) : "");
  fields.emplace_back("factor", factor ? fmt::format("{}", *factor) : "");
  fields.emplace_back("label", label_text(call));
  return fields;
}

// Compares only tensors of equal sizes. If the sizes differ, the strides differ for that reason alone.
std::optional<Mismatch::Field> stride_difference(const Operation& first, const Operation& second) {
  if (tensor_laid_out(first) == nullptr && tensor_laid_out(second) == nullptr) return std::nullopt;
  const auto a = moved_as_it_lies(first), b = moved_as_it_lies(second);
  if (a == nullptr || b == nullptr || a->sizes() != b->sizes() || same_layout(*a, *b)) return std::nullopt;
  return Mismatch::Field{"strides", strides_text(*a), strides_text(*b)};
}

// Shows only the first ones of many splits. If two ranks disagree, the mismatch names the split.
std::string splits_text(const std::vector<std::int64_t>& splits) {
  constexpr std::size_t kShown = 8;
  if (splits.size() <= kShown) return fmt::format("[{}]", fmt::join(splits, ", "));
  const std::span<const std::int64_t> first(splits.data(), kShown);
  return fmt::format("[{}, ... {} in all]", fmt::join(first, ", "), splits.size());
}

constexpr std::size_t kPartsShown = 4;

// `3 x allreduce(sum, float32[2], cpu)` if all parts are alike; otherwise lists the first ones.
std::string parts_text(const std::vector<Operation>& parts) {
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.push_back(fingerprint_text(part));
  if (std::ranges::all_of(texts, [&texts](const std::string& text) { return text == texts.front(); })) {
    return fmt::format("{} x {}", texts.size(), texts.front());
  }
  const auto count = texts.size();
  texts.resize(std::min(count, kPartsShown));
  return fmt::format("{}{}", fmt::join(texts, ", "), count > kPartsShown ? fmt::format(", ... {} in all", count) : "");
}

std::string or_none(std::string value) { return value.empty() ? "none" : std::move(value); }

std::vector<std::vector<std::int64_t>> sizes_of(const TensorList& tensors) {
  std::vector<std::vector<std::int64_t>> sizes;
  sizes.reserve(tensors.size());
  for (const auto& tensor : tensors) sizes.push_back(tensor.sizes().vec());
  return sizes;
}

std::vector<at::ScalarType> dtypes_of(const TensorList& tensors) {
  std::vector<at::ScalarType> dtypes;
  dtypes.reserve(tensors.size());
  for (const auto& tensor : tensors) dtypes.push_back(tensor.scalar_type());
  return dtypes;
}

}  // namespace

Signature signature_of(const Operation& call) {
  Signature signature;
  signature.type = call.type;
  signature.name = name_of(call);
  signature.fingerprint = fingerprint_text(call);
  signature.label = label_of(call);
  signature.input_sizes = sizes_of(call.inputs);
  signature.output_sizes = sizes_of(call.outputs);
  signature.input_dtypes = dtypes_of(call.inputs);
  signature.output_dtypes = dtypes_of(call.outputs);
  signature.timeout = call.timeout;
  return signature;
}

std::string fingerprint_text(const Operation& call) {
  std::vector<std::string> parts;
  for (const AgreedNumber& number : kAgreedNumbers) {
    if (call.*number.value >= 0) parts.push_back(fmt::format("{}={}", number.name, call.*number.value));
  }
  if (call.reduce_op != c10d::ReduceOp::UNUSED) {
    const auto factor = premul_factor(call);
    parts.push_back(fmt::format("{}{}", name_of(call.reduce_op), factor ? fmt::format(" {}", *factor) : ""));
  }
  if (const auto tensors = shared_tensors(call); !tensors.empty()) {
    const auto dtype = dtype_text(tensors.front().scalar_type());
    const bool list = tensors.size() > 1;
    const auto sparse = sparse_text(tensors);
    const auto shapes = call.type == OpType::ALLTOALL ? "" : shapes_text(tensors);  // each edge has its own size
    const auto* const laid_out = tensor_laid_out(call);
    parts.push_back(fmt::format("{}{}{}{}{}{}{}", dtype, list ? " " : "", shapes,
                                sparse.empty() ? "" : " sparse_dim=", sparse, laid_out != nullptr ? " strides=" : "",
                                laid_out != nullptr ? strides_text(*laid_out) : ""));
    parts.push_back(device_text(tensors.front()));
  }
  if (is_alltoall(call.type) && knows_splits(call)) {
    std::vector<std::int64_t> to, from;
    const auto peers = call.type == OpType::ALLTOALL ? call.inputs.size() : call.input_splits.size();
    for (int peer = 0; peer < static_cast<int>(peers); ++peer) {
      to.push_back(elements_to(call, peer));
      from.push_back(elements_from(call, peer));
    }
    parts.push_back(fmt::format("send {}, receive {}", splits_text(to), splits_text(from)));
  }
  if (!call.parts.empty()) parts.push_back(parts_text(call.parts));
  const auto label = label_text(call);
  return fmt::format("{}({}){}{}", name_of(call), fmt::join(parts, ", "), label.empty() ? "" : " label=", label);
}

std::vector<Mismatch::Field> differences(const Operation& first, const Operation& second) {
  std::vector<Mismatch::Field> fields;
  auto of_first = shared_fields(first);
  auto of_second = shared_fields(second);
  const bool same_op = of_first.front().second == of_second.front().second;
  for (std::size_t i = 0; i < of_first.size(); ++i) {
    auto& [name, value] = of_first[i];
    auto& other = of_second[i].second;
    if (value == other) continue;
    // If the operations differ, a field that only one of them has adds no information.
    if (!same_op && (value.empty() || other.empty()) && std::string_view(name) != "label") continue;
    fields.push_back({name, or_none(std::move(value)), or_none(std::move(other))});
  }
  if (auto field = stride_difference(first, second); field && same_op) fields.push_back(*std::move(field));
  if (first.parts.size() == second.parts.size()) {
    for (std::size_t i = 0; i < first.parts.size(); ++i) {
      const auto& [part, other] = std::tie(first.parts[i], second.parts[i]);
      if (agreement_hash(part, 0) == agreement_hash(other, 0)) continue;
      for (auto& field : differences(part, other)) {
        field.name += fmt::format(" of operation {}", i + 1);
        fields.push_back(std::move(field));
      }
    }
  }
  if (fields.empty()) {
    if (auto field = label_difference(first, second)) fields.push_back(*std::move(field));
  }
  if (fields.empty()) fields.push_back({"call", fingerprint_text(first), fingerprint_text(second)});
  return fields;
}

std::vector<Mismatch::Field> pair_differences(const Operation& send, const Operation& recv, bool shorter_fits) {
  std::vector<Mismatch::Field> fields;
  const auto& sent = send.inputs[0];
  const auto& received = recv.outputs[0];
  const auto note = [&fields](const char* name, std::string first, std::string second) {
    if (first != second) fields.push_back({name, std::move(first), std::move(second)});
  };
  if (!shorter_fits || sent.numel() > received.numel()) {
    note("elements", std::to_string(sent.numel()), std::to_string(received.numel()));
  }
  if (sent.scalar_type() != received.scalar_type()) {
    note("dtype", dtype_text(sent.scalar_type()), dtype_text(received.scalar_type()));
  }
  return fields;
}

std::string dtype_text(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kComplexHalf:
      return "complex32";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default: {
      std::string text = c10::toString(type);
      for (auto& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      return text;
    }
  }
}

}  // namespace rehearse::comm
