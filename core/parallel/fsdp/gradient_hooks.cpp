// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/gradient_hooks.h"

#include <utility>

#include <torch/csrc/autograd/function_hook.h>

#include "parallel/fsdp/sharded_model.h"

namespace rehearse::parallel {
namespace {

using torch::autograd::variable_list;

struct HookedParameter {
  std::weak_ptr<ShardedModel> model;
  std::size_t unit, parameter;
};

class BeforeGradient final : public torch::autograd::FunctionPreHook {
 public:
  explicit BeforeGradient(HookedParameter of) : of_(std::move(of)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (const auto model = of_.model.lock()) model->before_gradient(of_.unit, of_.parameter);
    return gradients;
  }

 private:
  HookedParameter of_;
};

class AfterGradient final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterGradient(HookedParameter of) : of_(std::move(of)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    if (const auto model = of_.model.lock()) model->after_gradient(of_.unit, of_.parameter);
    return outputs;
  }

 private:
  HookedParameter of_;
};

}  // namespace

void add_gradient_hooks(std::weak_ptr<ShardedModel> model, std::size_t unit, std::size_t parameter,
                        torch::autograd::Node& accumulator) {
  const HookedParameter hooked{std::move(model), unit, parameter};
  accumulator.add_pre_hook(std::make_unique<BeforeGradient>(hooked));
  accumulator.add_post_hook(std::make_unique<AfterGradient>(hooked));
}

}  // namespace rehearse::parallel
