// SPDX-License-Identifier: BSD-3-Clause
// Data-parallel modules whose forward reads data. They run in segments, and the gradients must be those of eager DDP.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

// Both branches use all parameters.
struct ReadingImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor h = second(first(x).relu());
    if ((h.sum() > 0).item<bool>()) return third(h * 2);
    return third(h.sigmoid()) - 1;
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(8, 16));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(16, 16));
  torch::nn::Linear third = register_module("third", torch::nn::Linear(16, 2));
};
TORCH_MODULE(Reading);

template <class Net>
void expect_like_eager_ddp(RankContext& ctx, const char* backend, int compiles, int graphs,
                           void (*prepare)(Net& net, int step)) {
  Net net, eager;
  rehearse_test::fill(*net);
  rehearse_test::fill(*eager);
  const DistributedDataParallelOptions options{.bucket_cap_mb = 0.0004};
  DistributedDataParallel ddp(net, ctx.group(), options), ddp_eager(eager, ctx.group(), options);
  auto compiled = compile(ddp, {.backend = backend});
  for (int step = 0; step < 6; ++step) {
    const at::Tensor x = rehearse_test::values({4, 8}, step, at::kFloat) * (ctx.rank() == step % 2 ? 1.0 : -1.0);
    prepare(net, step);
    prepare(eager, step);
    at::manual_seed(static_cast<std::uint64_t>(step));
    const at::Tensor found = compiled(x);
    at::manual_seed(static_cast<std::uint64_t>(step));
    const at::Tensor expected = ddp_eager(x);
    EXPECT_THAT(found, BitEqual(expected)) << "step " << step;
    found.sum().backward();
    expected.sum().backward();
    const auto mine = rehearse_test::gradient_copies(net->parameters());
    const auto theirs = rehearse_test::gradient_copies(eager->parameters());
    EXPECT_THAT(mine, BitEqual(theirs)) << "step " << step;
    net->zero_grad();
    eager->zero_grad();
  }
  EXPECT_EQ(compiled.stats().eager_calls, 0) << compiled.explain().text();
  EXPECT_EQ(compiled.stats().compiles, compiles);
  EXPECT_EQ(compiled.stats().graphs, graphs);  // counts pieces, because buckets cut the segments
}

// Half of the parameters belong to a script module.
struct ScriptedImpl : torch::nn::Module {
  ScriptedImpl() {
    script.register_attribute("training", c10::BoolType::get(), true);
    script.register_parameter("weight", register_parameter("weight", at::zeros({16, 16})), false);
    script.define(
        "def forward(self, x):\n    return torch.dropout(x.matmul(self.weight), 0.5, self.training).relu()\n");
  }
  at::Tensor forward(const at::Tensor& x) { return second(script.forward({first(x)}).toTensor()); }
  torch::jit::Module script{"Net"};
  torch::nn::Linear first = register_module("first", torch::nn::Linear(8, 16));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(16, 2));
};
TORCH_MODULE(Scripted);

// A loop that reads data in each iteration. The forward does not use an expert that no row chooses.
struct RoutedImpl : torch::nn::Module {
  explicit RoutedImpl(int form) : form(form) {
    for (int i = 0; i < 4; ++i) {
      experts.push_back(register_module("expert" + std::to_string(i), torch::nn::Linear(8, 8)));
    }
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor chosen = gate(x).argmax(-1);
    at::Tensor out = x * 1;
    for (std::size_t i = 0; i < experts.size(); ++i) {
      const at::Tensor mask = chosen == static_cast<std::int64_t>(i);
      if (!mask.any().item<bool>()) continue;
      if (form == 0) {
        const at::Tensor rows = mask.nonzero().squeeze(1);
        out = out.index_add(0, rows, experts[i](x.index_select(0, rows)));
      } else if (form == 1) {
        out = out + experts[i](x) * mask.unsqueeze(-1) * (1.0 + static_cast<double>(i));
      } else {
        out.index_put_({mask}, experts[i](x.index({mask})));
      }
    }
    return out;
  }

  const int form;
  torch::nn::Linear gate = register_module("gate", torch::nn::Linear(8, 4));
  std::vector<torch::nn::Linear> experts;
};
TORCH_MODULE(Routed);

void expect_routed_like_eager_ddp(RankContext& ctx, const char* backend, int form) {
  Routed net(form), eager(form);
  rehearse_test::fill(*net);
  rehearse_test::fill(*eager);
  const DistributedDataParallelOptions options{.bucket_cap_mb = 0.0004, .find_unused_parameters = true};
  DistributedDataParallel ddp(net, ctx.group(), options), ddp_eager(eager, ctx.group(), options);
  auto compiled = compile(ddp, {.backend = backend, .recompile_limit = 64});
  for (int step = 0; step < 8; ++step) {
    const at::Tensor x = rehearse_test::values({3, 8}, step / 2 * 3 + ctx.rank(), at::kFloat).sin();
    const at::Tensor found = compiled(x), expected = ddp_eager(x);
    EXPECT_THAT(found, BitEqual(expected)) << "step " << step;
    found.sum().backward();
    expected.sum().backward();
    EXPECT_THAT(rehearse_test::gradient_copies(net->parameters()),
                BitEqual(rehearse_test::gradient_copies(eager->parameters())))
        << "step " << step;
    net->zero_grad();
    eager->zero_grad();
  }
  EXPECT_EQ(compiled.explain().refusal, "");
}

TEST(DdpReads, AMixtureOfExperts_IsNoChangeInTheSecondCall) {
  for (const int form : {0, 1, 2}) {
    for (const char* backend : {"eager", "aot_eager"}) {
      rehearse_test::run_ranks({.ranks = 2, .seed = 7},
                               [&](RankContext& ctx) { expect_routed_like_eager_ddp(ctx, backend, form); });
    }
  }
}

// A graph has one autograd node for all its results. Here these are the changed argument and, because of the read, the
// sum of the parameter.
struct ChangesItsArgumentImpl : torch::nn::Module {
  explicit ChangesItsArgumentImpl(bool returns_it) : returns_it(returns_it) {}
  std::vector<at::Tensor> forward(const at::Tensor& x) {
    x.zero_();
    const bool positive = (weight.sum() > 0).item<bool>();
    return returns_it ? std::vector<at::Tensor>{weight, x} : std::vector<at::Tensor>{positive ? weight : weight * 2};
  }

  const bool returns_it;
  at::Tensor weight = register_parameter("weight", at::ones({4}));
};
TORCH_MODULE(ChangesItsArgument);

// docs/COMPILE.md lists the error of compiled code, and how to avoid it.
TEST(DdpReads, ABackwardThatBeginsAtAChangedArgument) {
  rehearse_test::run_ranks({.ranks = 2, .seed = 7}, [](RankContext& ctx) {
    for (const bool returns_it : {false, true}) {
      DistributedDataParallel ddp(ChangesItsArgument(returns_it), ctx.group(), {.find_unused_parameters = true});
      const auto gradient = [](auto& called) {
        const at::Tensor leaf = at::ones({4}).requires_grad_(), x = leaf * 1.5;
        called(x);
        x.sum().backward();
        return leaf.grad();
      };
      EXPECT_THAT(gradient(ddp), BitEqual(at::zeros({4})));
      auto compiled = compile(ddp);
      if (returns_it) {
        EXPECT_THAT(gradient(compiled), BitEqual(at::zeros({4})));
      } else {
        EXPECT_THAT([&] { gradient(compiled); },
                    testing::ThrowsMessage<std::exception>(testing::HasSubstr("to mark a variable ready only once")));
      }
    }
  });
}

TEST(DdpReads, SegmentsAreSplitAndGradientsAreReduced) {
  for (const char* backend : {"eager", "aot_eager"}) {
    rehearse_test::run_ranks({.ranks = 2, .seed = 7}, [&](RankContext& ctx) {
      expect_like_eager_ddp<Reading>(ctx, backend, 1, 3, [](Reading&, int) {});
    });
  }
}

TEST(DdpReads, ScriptModulesTrainAndEvaluate) {
  for (const char* backend : {"eager", "aot_eager"}) {
    rehearse_test::run_ranks({.ranks = 2, .seed = 7}, [&](RankContext& ctx) {
      // Training and evaluation are compiled each.
      expect_like_eager_ddp<Scripted>(ctx, backend, 2, 4,
                                      [](Scripted& net, int step) { net->script.train(step % 4 < 2); });
    });
  }
}

}  // namespace
}  // namespace rehearse::compiler
