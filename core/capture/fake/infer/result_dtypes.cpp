// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/infer/result_dtypes.h"

#include <map>
#include <string>
#include <utility>

#include <ATen/ops/ones.h>

#include <rehearse_internal/exec/fiber_local.h>
#include "capture/fake/infer/below_autograd.h"
#include "capture/fake/infer/fixed_generator.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/infer/stand_ins.h"

namespace rehearse::capture {
namespace {

struct KnownDtypes {
  std::map<std::string, std::vector<c10::ScalarType>> of;  // by key_of() of the call
};
const exec::FiberLocal<KnownDtypes> known_dtypes;

void append(std::string& key, const c10::IValue& value) {
  key += '|';
  if (value.isScalar() || value.isSymInt() || value.isSymFloat()) {
    key += value.isBool() ? 'b' : value.isDouble() || value.isSymFloat() ? 'd' : value.isComplexDouble() ? 'c' : 'i';
    if (value.isInt()) key += std::to_string(value.toInt());  // an argument of type dtype arrives as an integer
  } else if (value.isString()) {
    key += value.toStringRef();
  } else if (value.isNone()) {
    key += 'n';
  }
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    key += std::to_string(static_cast<int>(tensor.scalar_type()));
    key += tensor.unsafeGetTensorImpl()->is_wrapped_number() ? 'w' : tensor.dim() == 0 ? 's' : 't';
  });
}

std::string key_of(const Call& call) {
  std::string key = call.facts.name + std::to_string(static_cast<int>(at::get_default_dtype_as_scalartype()));
  for (const c10::IValue& value : call.arguments) append(key, value);
  return key;
}

std::vector<c10::ScalarType> run_small(const Call& call) {
  BelowAutograd guard;
  const FixedGenerator no_draw(call.facts.is_random);
  const c10::Device device(c10::kCPU);
  StandIns stand_ins([&](const at::Tensor& fake) {
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(fake.dim()), 1);
    at::Tensor made = at::ones(ones, at::TensorOptions(fake.scalar_type()).device(device));
    if (fake.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
  });
  torch::jit::Stack stack = stand_ins.arguments_of(call, device);
  for (c10::IValue& value : stack) {
    if (value.isSymInt()) value = c10::IValue(std::int64_t{1});
    if (value.isSymFloat()) value = c10::IValue(1.0);
  }
  call.facts.handle.callBoxed(stack);
  std::vector<c10::ScalarType> dtypes;
  for (const c10::IValue& result : stack) {
    for_each_tensor(result, [&](const at::Tensor& tensor) { dtypes.push_back(tensor.scalar_type()); });
  }
  return dtypes;
}

}  // namespace

const std::vector<c10::ScalarType>& result_dtypes(const Call& call) {
  auto [found, is_new] = known_dtypes->of.try_emplace(key_of(call));
  if (is_new) {
    try {
      found->second = run_small(call);
    } catch (...) {
      known_dtypes->of.erase(found);
      throw;
    }
  }
  return found->second;
}

}  // namespace rehearse::capture
