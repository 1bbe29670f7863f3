// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include <rehearse/sim/compute_model.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "faults/transfers/slow.h"
#include "layers/layers.h"
#include "operator_cost.h"

namespace rehearse::sim {
namespace {

// Makes the operators of a rank take virtual time.
class CountedOperators final : public operators::OperatorWatcher {
 public:
  explicit CountedOperators(const ComputeModel& model) : model_(model) {}

  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) override;
  void after(c10::ArrayRef<c10::IValue> results) override;

 private:
  const ComputeModel model_;
  std::optional<OperatorCost> cost_;  // the running operator's cost
};

bool is_meta(c10::ArrayRef<c10::IValue> results) {
  return !results.empty() && results.front().isTensor() && results.front().toTensor().defined() &&
         results.front().toTensor().is_meta();
}

void CountedOperators::before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  cost_.emplace(op.schema(), arguments);
}

void CountedOperators::after(c10::ArrayRef<c10::IValue> results) {
  if (is_meta(results)) return;
  const auto duration = cost_->duration(results, model_);
  if (duration > VirtualDuration::zero()) exec::this_rank::sleep_for(duration, "a computation");
}

// The same model, but everything takes `factor` times as long.
ComputeModel model_for(ComputeModel model, double factor) {
  model.flops_per_second /= factor;
  model.bytes_per_second /= factor;
  model.per_operator = slowed(model.per_operator, factor);
  return model;
}

class OperatorTimes final : public Layer {
 public:
  explicit OperatorTimes(const WorldOptions& options) : options_(options) {}

  std::shared_ptr<operators::OperatorWatcher> watcher_of(int rank) override {
    return std::make_shared<CountedOperators>(model_for(options_.compute, slowness(options_.faults, rank)));
  }

 private:
  const WorldOptions& options_;
};

}  // namespace

std::unique_ptr<Layer> make_operator_times(const Ground& ground) {
  return ground.options.compute.on() ? std::make_unique<OperatorTimes>(ground.options) : nullptr;
}

}  // namespace rehearse::sim
