// SPDX-License-Identifier: BSD-3-Clause
#include "process/check/messages.h"

#include <utility>

#include <ATen/SparseTensorImpl.h>
#include <c10/core/TensorImpl.h>

#include "comm/call/fingerprint.h"

namespace rehearse::real {
namespace {

TensorFacts facts_of_tensor(const at::Tensor& tensor) {
  TensorFacts facts;
  facts.dtype = tensor.scalar_type();
  facts.device = tensor.device().type();
  facts.sparse_dims = comm::sparse_dims(tensor);
  facts.sizes = tensor.sizes().vec();
  if (!tensor.is_sparse()) facts.strides = tensor.strides().vec();
  return facts;
}

std::vector<TensorFacts> facts_of_list(const comm::TensorList& tensors) {
  std::vector<TensorFacts> facts;
  for (const auto& tensor : tensors) facts.push_back(facts_of_tensor(tensor));
  return facts;
}

at::Tensor without_data(const TensorFacts& facts) {
  const auto type = c10::scalarTypeToTypeMeta(facts.dtype);
  if (facts.sparse_dims > 0) {
    auto sparse = c10::make_intrusive<at::SparseTensorImpl>(c10::DispatchKeySet(c10::DispatchKey::SparseCPU), type);
    const auto dense_dims = static_cast<std::int64_t>(facts.sizes.size()) - facts.sparse_dims;
    sparse->raw_resize_(facts.sparse_dims, dense_dims, facts.sizes);
    return at::Tensor(std::move(sparse));
  }
  const auto key = facts.device == c10::kCUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  auto dense = c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(key), type, c10::Device(facts.device));
  dense->set_sizes_and_strides(facts.sizes, facts.strides);
  return at::Tensor(std::move(dense));
}

}  // namespace

CallFacts facts_of(const comm::Operation& call) {
  CallFacts facts;
  facts.type = call.type;
  facts.reduce_op = call.reduce_op;
  for (const comm::AgreedNumber& number : comm::kAgreedNumbers) facts.agreed.push_back(call.*number.value);
  facts.peer = call.peer;
  facts.tag = call.tag;
  facts.inputs = facts_of_list(call.inputs);
  facts.outputs = facts_of_list(call.outputs);
  facts.input_splits.assign(call.input_splits.begin(), call.input_splits.end());
  facts.output_splits.assign(call.output_splits.begin(), call.output_splits.end());
  facts.factor = comm::premul_factor(call);
  for (const auto& part : call.parts) facts.parts.push_back(facts_of(part));
  facts.timeout = call.timeout;
  if (call.label != nullptr) facts.label = *call.label;
  if (call.payload != nullptr) facts.payload = call.payload->text;
  return facts;
}

const comm::PayloadName* CallTexts::payload(const std::string& text) {
  const auto [entry, is_new] = payloads_.try_emplace(text);
  if (is_new) entry->second = {text, comm::text_hash(text)};
  return &entry->second;
}

comm::Operation operation_of(const CallFacts& facts, CallTexts& texts) {
  comm::Operation call;
  call.type = facts.type;
  call.reduce_op = facts.reduce_op;
  for (std::size_t i = 0; i < comm::kAgreedNumbers.size(); ++i) {
    call.*comm::kAgreedNumbers[i].value = facts.agreed.at(i);
  }
  call.peer = facts.peer;
  call.tag = facts.tag;
  for (const auto& tensor : facts.inputs) call.inputs.push_back(without_data(tensor));
  for (const auto& tensor : facts.outputs) call.outputs.push_back(without_data(tensor));
  call.input_splits.assign(facts.input_splits.begin(), facts.input_splits.end());
  call.output_splits.assign(facts.output_splits.begin(), facts.output_splits.end());
  if (facts.factor) call.reduce_supplement = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(*facts.factor);
  for (const auto& part : facts.parts) call.parts.push_back(operation_of(part, texts));
  call.timeout = facts.timeout;
  if (facts.label) call.label = texts.label(*facts.label);
  if (facts.payload) call.payload = texts.payload(*facts.payload);
  return call;
}

}  // namespace rehearse::real
