// SPDX-License-Identifier: BSD-3-Clause
#include "counted_operators.h"

#include <ATen/core/Tensor.h>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::sim {
namespace {

bool is_meta(c10::ArrayRef<c10::IValue> results) {
  return !results.empty() && results.front().isTensor() && results.front().toTensor().defined() &&
         results.front().toTensor().is_meta();
}

}  // namespace

void CountedOperators::before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  cost_.emplace(op.schema(), arguments);
}

void CountedOperators::after(c10::ArrayRef<c10::IValue> results) {
  if (is_meta(results)) return;
  const auto duration = cost_->duration(results, model_);
  if (duration > VirtualDuration::zero()) exec::this_rank::sleep_for(duration, "a computation");
}

}  // namespace rehearse::sim
