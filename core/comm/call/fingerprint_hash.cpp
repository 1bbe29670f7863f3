// SPDX-License-Identifier: BSD-3-Clause
#include <bit>

#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/item.h>

#include <rehearse/hash/word_hash.h>

#include "fingerprint.h"
#include "memory_layout.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;

class Hash {
 public:
  explicit Hash(std::uint64_t start) : hash_(start) {}
  void add(std::uint64_t word) noexcept { hash_.add(word); }
  void add_kind(const at::Tensor& tensor) noexcept {
    add((static_cast<std::uint64_t>(tensor.scalar_type()) << 8) | static_cast<std::uint64_t>(tensor.device().type()));
  }
  void add_sizes(const at::Tensor& tensor) noexcept {
    add(static_cast<std::uint64_t>(tensor.dim()));
    for (const auto size : tensor.sizes()) add(static_cast<std::uint64_t>(size));
    if (tensor.is_sparse()) add(static_cast<std::uint64_t>(sparse_dims(tensor)));
  }
  void add_strides(const at::Tensor& tensor) noexcept {
    for (const auto stride : telling_strides(tensor)) add(static_cast<std::uint64_t>(stride));
  }
  std::uint64_t value() const noexcept { return hash_.value(); }

 private:
  WordHash hash_;
};

}  // namespace

std::span<const Operation> parts_of(const Operation& call) noexcept {
  return call.parts.empty() ? std::span(&call, 1) : std::span(call.parts);
}

std::span<const at::Tensor> shared_tensors(const Operation& call) noexcept {
  const auto tensors = op_row(call.type).alike;
  if (tensors == OpTensors::none) return {};
  if (tensors == OpTensors::outputs) return {call.outputs.data(), call.outputs.size()};
  return {call.inputs.data(), tensors == OpTensors::first_input ? std::size_t{1} : call.inputs.size()};
}

std::int64_t sparse_dims(const at::Tensor& tensor) noexcept {
  // Bypasses the dispatcher for speed, because every rank's call comes here.
  return tensor.is_sparse() ? static_cast<const at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl())->sparse_dim() : 0;
}

std::optional<double> premul_factor(const Operation& call) {
  if (call.reduce_op != c10d::ReduceOp::PREMUL_SUM) return std::nullopt;
  const auto* const supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(call.reduce_supplement.get());
  if (supplement == nullptr) return std::nullopt;
  const auto& tensor = supplement->tensor_factor;
  if (!tensor.defined()) return supplement->double_factor;
  if (!tensor.device().is_cpu() || tensor.is_complex()) return std::nullopt;
  return tensor.item().toDouble();
}

std::uint64_t agreement_hash(const Operation& call, std::uint64_t label_hash) {
  Hash hash(label_hash);
  hash.add(static_cast<std::uint64_t>(call.type) | (static_cast<std::uint64_t>(call.reduce_op) << 8));
  for (const AgreedNumber& number : kAgreedNumbers) hash.add(static_cast<std::uint64_t>(call.*number.value));
  if (call.type == OpType::BARRIER) hash.add(static_cast<std::uint64_t>(call.tag));
  const bool sized = !is_alltoall(call.type);
  for (const auto& tensor : shared_tensors(call)) {
    hash.add_kind(tensor);
    if (sized) hash.add_sizes(tensor);
  }
  if (const auto* const tensor = tensor_laid_out(call)) hash.add_strides(*tensor);
  if (const auto factor = premul_factor(call)) hash.add(std::bit_cast<std::uint64_t>(*factor));
  for (const auto& part : call.parts) hash.add(agreement_hash(part, 0));
  return hash.value();
}

std::uint64_t signature_hash(const Operation& call, std::uint64_t agreement) {
  Hash hash(agreement);
  hash.add(static_cast<std::uint64_t>(call.timeout.count()));
  if (call.type == OpType::COALESCED) hash.add(static_cast<std::uint64_t>(call.tag));
  if (call.payload != nullptr) hash.add(call.payload->hash);
  if (!op_row(call.type).own_sizes) return hash.value();  // the sizes in `agreement` determine the others
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    hash.add(list->size());
    for (const auto& tensor : *list) hash.add_sizes(tensor);
  }
  for (const auto split : call.input_splits) hash.add(static_cast<std::uint64_t>(split));
  for (const auto split : call.output_splits) hash.add(static_cast<std::uint64_t>(split));
  for (const auto& part : call.parts) hash.add(signature_hash(part, 0));
  return hash.value();
}

std::uint64_t text_hash(std::string_view text) noexcept {
  Hash hash(text.size());
  for (const char letter : text) hash.add(static_cast<unsigned char>(letter));
  return hash.value();
}

std::int64_t elements_to(const Operation& call, int peer) noexcept {
  const auto index = static_cast<std::size_t>(peer);
  return call.type == OpType::ALLTOALL ? call.inputs[index].numel() : call.input_splits[index];
}

std::int64_t elements_from(const Operation& call, int peer) noexcept {
  const auto index = static_cast<std::size_t>(peer);
  return call.type == OpType::ALLTOALL ? call.outputs[index].numel() : call.output_splits[index];
}

bool knows_splits(const Operation& call) noexcept {
  return call.type == OpType::ALLTOALL ? !call.inputs.empty() : !call.input_splits.empty();
}

std::int64_t even_split(const Operation& call) noexcept {
  if (!knows_splits(call)) return -1;
  const auto peers = call.type == OpType::ALLTOALL ? call.inputs.size() : call.input_splits.size();
  const auto split = elements_to(call, 0);
  for (int peer = 0; peer < static_cast<int>(peers); ++peer) {
    if (elements_to(call, peer) != split || elements_from(call, peer) != split) return -1;
  }
  return split;
}

}  // namespace rehearse::comm
