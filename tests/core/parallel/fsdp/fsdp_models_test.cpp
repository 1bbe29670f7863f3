// SPDX-License-Identifier: BSD-3-Clause
// Sharded transformers: after several steps, their parameters equal those of DistributedDataParallel and of one
// process.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "core/parallel/fsdp/fsdp_fixture.h"
#include "core/parallel/fsdp/reference_models.h"
#include "models/bert.h"

namespace {

using namespace rehearse_test;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using Named = std::map<std::string, at::Tensor>;

constexpr int kModelSteps = 3;

// Small double values, the same in every module.
void initialise(torch::nn::Module& module) {
  for (auto& each : module.parameters()) each.set_data(each.detach().to(at::kDouble));  // buffers keep their dtypes
  fill(module);
  const at::NoGradGuard no_grad;
  for (auto& each : module.parameters()) each.mul_(0.25);
}

struct Transformer {
  using Net = std::shared_ptr<ReferenceLm>;
  static Net make() {
    auto net = std::make_shared<ReferenceLm>(/*tied=*/true);
    initialise(*net);
    return net;
  }
  static UnitPolicy units() { return UnitPolicy::of_type<ReferenceBlockImpl>(); }
};

struct TinyBert {
  using Net = rehearse::test::BertForMaskedLM;
  static Net make() {
    auto shape = rehearse::test::BertShape::tiny();
    shape.dropout = 0;
    Net net(shape);
    initialise(*net);
    return net;
  }
  static UnitPolicy units() { return UnitPolicy::of_type<rehearse::test::BertLayerImpl>(); }
};

at::Tensor tokens_of(int rank, int step) {
  return (at::arange(10, at::kLong) * (rank + 3) + step).remainder(29).view({2, 5});
}

at::Tensor loss_of_logits(const at::Tensor& logits) { return logits.square().mean(); }

std::unique_ptr<torch::optim::Optimizer> make_optimizer(bool adam, const std::vector<at::Tensor>& parameters) {
  // The large epsilon keeps the rounding errors of zero gradients from growing.
  if (adam) return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(1e-2).eps(1e-3));
  return std::make_unique<torch::optim::SGD>(parameters, 0.1);
}

void train(auto& model, bool adam, const std::function<at::Tensor(int step)>& loss) {
  auto parameters = model.parameters();  // a shared parameter occurs twice and must be stepped once
  std::set<const c10::TensorImpl*> seen;
  std::erase_if(parameters, [&](const at::Tensor& each) { return !seen.insert(each.unsafeGetTensorImpl()).second; });
  const auto optimizer = make_optimizer(adam, parameters);
  for (int step = 0; step < kModelSteps; ++step) {
    model.zero_grad();
    loss(step).backward();
    optimizer->step();
  }
}

void expect_close(const Named& found, const Named& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(at::allclose(found.at(name), tensor, 1e-11, 1e-12)) << name;
}

Named parameters_of(const torch::nn::Module& module) {
  Named all;
  std::set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) all.emplace(item.key(), item.value().detach().clone());
  }
  return all;
}

template <class Model>
Named one_process(int ranks, bool adam) {
  auto net = Model::make();
  train(*net, adam, [&](int step) {
    at::Tensor sum;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loss = loss_of_logits(net->forward(tokens_of(rank, step)));
      sum = rank == 0 ? loss : sum + loss;
    }
    return sum / ranks;
  });
  return parameters_of(*net);
}

template <class Model>
void expect_same(int ranks, bool adam) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, " << (adam ? "AdamW" : "SGD"));
  const auto expected = one_process<Model>(ranks, adam);
  run_ranks({.ranks = ranks}, [&](RankContext& ctx) {
    rehearse::DistributedDataParallel ddp(Model::make(), ctx.group());
    train(ddp, adam, [&](int step) { return loss_of_logits(ddp.forward(tokens_of(ctx.rank(), step))); });
    rehearse::FullyShardedDataParallel fsdp(Model::make(), ctx.group(), {.units = Model::units()});
    train(fsdp, adam, [&](int step) { return loss_of_logits(fsdp.forward(tokens_of(ctx.rank(), step))); });
    const auto state = fsdp.full_state_dict();
    Named found(state.begin(), state.end());
    std::erase_if(found, [&](const auto& item) { return !expected.contains(item.first); });  // remove buffers
    expect_close(found, expected);
    expect_close(found, parameters_of(ddp.module()));
  });
}

template <class Model>
class FsdpModels : public ::testing::Test {};
using Models = ::testing::Types<Transformer, TinyBert>;
TYPED_TEST_SUITE(FsdpModels, Models);

TYPED_TEST(FsdpModels, SeveralSteps_AreThoseOfDdpAndOfOneProcess) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const bool adam : {false, true}) expect_same<TypeParam>(ranks, adam);
  }
}

}  // namespace
