// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <ATen/core/List.h>
#include <c10/core/Allocator.h>
#include <c10/core/TensorImpl.h>

#include <rehearse_internal/exec/fiber_local.h>
#include "capture/fake/infer/below_autograd.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/infer/stand_ins.h"

namespace rehearse::capture {
namespace {

TensorSpec result_spec(const at::Tensor& result, c10::Device device) {
  TensorSpec spec = spec_of(result);
  spec.device = device;
  spec.requires_grad = false;
  return spec;
}

// Operators whose Meta kernel has been seen to fail.
struct MetaFailures {
  std::unordered_set<std::string> at_all, with_symbols;
};
const exec::FiberLocal<MetaFailures> meta_failures;

Output output_of(const ReturnFacts& facts, const c10::IValue& value, c10::Device device) {
  if (facts.is_tensor) {
    if (value.isNone() || !value.toTensor().defined()) return {};
    return result_spec(value.toTensor(), device);
  }
  if (!facts.is_tensor_list) return value;
  std::vector<TensorSpec> specs;
  for (const at::Tensor& item : value.toTensorVector()) specs.push_back(result_spec(item, device));
  return specs;
}

}  // namespace

Outputs outputs_of(const OperatorFacts& facts, c10::ArrayRef<c10::IValue> results, c10::Device device) {
  Outputs outputs;
  outputs.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) outputs.push_back(output_of(facts.returns[i], results[i], device));
  return outputs;
}

at::Tensor meta_like(const at::Tensor& fake) {
  const c10::Device meta(c10::kMeta);
  const c10::TensorImpl* const impl = fake.unsafeGetTensorImpl();
  c10::Storage storage(c10::Storage::use_byte_size_t(), fake.storage().sym_nbytes(), c10::DataPtr(nullptr, meta),
                       c10::GetAllocator(c10::kMeta), true);
  auto made = c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::Meta),
                                                   impl->dtype());
  if (impl->has_symbolic_sizes_strides()) {
    made->set_sizes_and_strides(impl->sym_sizes(), impl->sym_strides(), impl->sym_storage_offset());
  } else {
    made->set_sizes_and_strides(impl->sizes(), impl->strides(), impl->storage_offset());
  }
  if (impl->is_wrapped_number()) made->set_wrapped_number(true);
  at::Tensor tensor(std::move(made));
  if (fake.is_conj()) tensor._set_conj(true);
  if (fake.is_neg()) tensor._set_neg(true);
  return tensor;
}

Outputs infer_on_meta(const Call& call) {
  BelowAutograd guard;
  StandIns stand_ins(meta_like);
  torch::jit::Stack stack = stand_ins.arguments_of(call, c10::Device(c10::kMeta));
  call.facts.handle.callBoxed(stack);
  return outputs_of(call.facts, stack, device_of(call));
}

std::optional<Outputs> try_on_meta(const Call& call) {
  auto& unfit = has_symbols(call) ? meta_failures->with_symbols : meta_failures->at_all;
  if (unfit.contains(call.facts.name)) return std::nullopt;
  try {
    return infer_on_meta(call);
  } catch (const c10::NotImplementedError&) {  // the kernel calls an operator without a Meta kernel
    meta_failures->at_all.insert(call.facts.name);
  } catch (const c10::Error&) {
    // Without symbols, the error means that the call is wrong. With symbols, the symbols may be its cause; if the call
    // is wrong, a later kernel with plain sizes throws the error again.
    if (!has_symbols(call)) throw;
    meta_failures->with_symbols.insert(call.facts.name);
  }
  return std::nullopt;
}

}  // namespace rehearse::capture
