// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a captured function makes a tensor require a gradient, the tensor is a leaf, as in eager mode. After a
// backward, the leaf has a gradient, and the gradient flows no further.
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/like_eager/layers.h"
#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test {
namespace {

using rehearse::test::BitEqual;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// Inputs: two leaves of four columns. The second one requires a gradient. The first one requires a gradient in half of
// the runs.
const Program kLeafPrograms[] = {
    {"of an argument's memory",
     [](const Tensors& g) {
       const at::Tensor p = g[0].detach().requires_grad_();
       return Tensors{p, p.sin()};
     }},
    {"by set_requires_grad()",
     [](const Tensors& g) {
       at::Tensor p = (g[0] + 123).detach();
       p.set_requires_grad(true);
       return Tensors{p.sin() * g[1], p};
     }},
    {"used with what it was made of",
     [](const Tensors& g) {
       const at::Tensor h = g[0] * g[1];
       const at::Tensor p = h.detach().requires_grad_();
       return Tensors{(p * h).sum(), h + g[1]};
     }},
    {"two, one of the other",
     [](const Tensors& g) {
       const at::Tensor p = (g[0] * 2).detach().requires_grad_();
       const at::Tensor q = (p * g[1]).detach().requires_grad_();
       return Tensors{q * p, q, p};
     }},
    {"made where gradients are off",
     [](const Tensors& g) {
       at::Tensor p;
       {
         const at::NoGradGuard no_grad;
         p = (g[0] * g[1]).requires_grad_();
       }
       return Tensors{p * g[1], p};
     }},
    {"changed in place afterwards, and asked",
     [](const Tensors& g) {
       const at::Tensor p = g[0].detach().clone().requires_grad_();
       const at::NoGradGuard no_grad;
       p.mul_(3);
       const at::AutoGradMode grad(true);
       return Tensors{p.is_leaf() && p.requires_grad() ? p * g[1] : g[1], p};
     }},
    {"of memory that the function changes afterwards",
     [](const Tensors& g) {
       const at::Tensor base = g[0].detach().clone();
       const at::Tensor p = base.detach().requires_grad_();
       base.mul_(2);
       return Tensors{(p * g[1]).sum(), p};
     }},
    {"that requires no grad again",
     [](const Tensors& g) {
       at::Tensor p = g[0].detach().clone().requires_grad_();
       const at::Tensor y = p * g[1];
       p.set_requires_grad(false);
       return Tensors{y, p * g[1], p};
     }},
    {"behind a read",
     [](const Tensors& g) {
       const at::Tensor h = g[0].detach() * 2;
       if (h.sum().item<double>() < 1e9) h.requires_grad_();
       return Tensors{h * g[1], h};
     }},
    {"in front of a read",
     [](const Tensors& g) {
       const at::Tensor p = (g[0] + 1).detach().requires_grad_();
       return p.sum().item<double>() < 1e9 ? Tensors{p * g[1], p} : Tensors{p};
     }},
    {"that nobody uses",
     [](const Tensors& g) {
       g[0].detach().clone().requires_grad_();
       return Tensors{g[0] * g[1]};
     }},
    {"a layer",
     [](const Tensors& g) {
       torch::nn::Linear layer(torch::nn::LinearOptions(4, 4));
       return Tensors{layer->forward(g[0].to(at::kFloat)) * g[1], layer->weight, layer->bias};
     }},
    {"of zeros, returned twice",
     [](const Tensors& g) {
       const at::Tensor p = at::zeros_like(g[0]).requires_grad_();
       return Tensors{p, p, p + g[1]};
     }},
};

struct Setting {
  const char* backend;
  std::optional<bool> dynamic = {};
};

Tensors input(std::int64_t rows, bool requires_grad) {
  at::manual_seed(static_cast<std::uint64_t>(rows));
  return {at::randn({rows, 4}, at::kDouble).requires_grad_(requires_grad),
          at::randn({rows, 4}, at::kDouble).requires_grad_()};
}

// Runs `forward` on copies of `given`. Collects the gradients of these copies and of the leaves among the results.
template <class Forward>
Observed run(Forward&& forward, const Tensors& given, bool grad_enabled) {
  Tensors mine = copies_of(given), leaves = mine;
  at::manual_seed(3);
  const at::AutoGradMode mode(grad_enabled);
  Tensors results = forward(mine);
  for (const at::Tensor& result : results) {
    if (result.is_leaf()) leaves.push_back(result);
  }
  const at::AutoGradMode on(true);
  return differentiate(std::move(results), std::move(mine), std::move(leaves));
}

TEST(MadeLeaves, HaveTheirGradients) {
  for (const Program& program : kLeafPrograms) {
    for (const Setting setting : {Setting{"eager"}, Setting{"aot_eager"}, Setting{"aot_eager", true}}) {
      for (const int with : {0, 1, 2, 3}) {
        const bool requires_grad = (with & 1) != 0, grad_enabled = (with & 2) != 0;
        const std::string what = std::string(program.name) + " by " + setting.backend + " " + std::to_string(with);
        auto compiled = rehearse::compile(program.run, {.backend = setting.backend, .dynamic = setting.dynamic});
        for (const std::int64_t rows : {3, 3, 5}) {
          const Tensors given = input(rows, requires_grad);
          const Observed expected = run(program.run, given, grad_enabled);
          const Observed found = run(compiled, given, grad_enabled);
          expect_same(found, expected, what);
          for (std::size_t i = 0; i < expected.results.size(); ++i) {
            EXPECT_EQ(found.results[i].is_leaf(), expected.results[i].is_leaf()) << what << " " << i;
          }
        }
        EXPECT_EQ(compiled.stats().eager_calls, 0) << what << "\n" << compiled.explain().text();
      }
    }
  }
}

// A back end gets the graphs before and after the node that makes the leaf, but never that node.
TEST(MadeLeaves, AreMadeBetweenPieces) {
  auto compiled = rehearse::compile(
      [](const at::Tensor& x) {
        const at::Tensor p = (x + 1).detach().requires_grad_();
        return Tensors{p, p.sin()};
      },
      {.backend = "counting", .fullgraph = true});
  const at::Tensor x = at::ones({3});
  compiled(x);
  EXPECT_EQ(compiled.stats().graphs, 2);
  std::string graphs;
  for (const auto& entry : compiled.explain().entries) {
    for (const auto& graph : entry.graphs) graphs += rehearse::graph::to_text(*graph.module);
  }
  EXPECT_THAT(compiled.explain().break_reasons(),
              ElementsAre(HasSubstr("a tensor begins to require grad behind it, at ")));
  EXPECT_THAT(graphs, AllOf(HasSubstr("sin"), HasSubstr("detach"), Not(HasSubstr("torch.ops.aten.requires_grad_"))));
}

const LayersProgram kLayers[] = {
    {"between two layers",
     [](LayersImpl& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       const at::Tensor p = h.detach().requires_grad_();
       return net.c->forward(net.b->forward(p)) + h * p;
     }},
    {"two, and writes",
     [](LayersImpl& net, const at::Tensor& x) {
       const at::Tensor p = (x * 2).detach().requires_grad_();
       net.buffer.add_(p.detach());
       const at::Tensor h = net.b->forward(p * net.buffer);
       const at::Tensor q = h.detach().requires_grad_();
       return net.c->forward(q + h) * net.a->forward(p);
     }},
};
TEST(MadeLeaves, InAModuleInPieces) { expect_like_eager_in_pieces(kLayers); }
TEST(MadeLeaves, InAModule) { expect_like_eager_in_one_piece(kLayers); }

// Eager mode changes the argument itself. So must the compiled function.
TEST(MadeLeaves, AnArgumentIsSwitchedOn) {
  for (const char* backend : {"eager", "aot_eager"}) {
    for (const bool is_used : {false, true}) {
      auto compiled = rehearse::compile(
          [is_used](const at::Tensor& x) {
            x.set_requires_grad(true);
            return is_used ? x * 2 : at::ones({2});
          },
          {.backend = backend, .fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = at::ones({3});
        const at::Tensor result = compiled(x);
        EXPECT_TRUE(x.requires_grad()) << backend << is_used;
        if (!is_used) continue;
        result.sum().backward();
        EXPECT_THAT(x.grad(), BitEqual(at::full({3}, 2.0))) << backend;
      }
    }
  }
}

TEST(MadeLeaves, WhatIsRefused) {
  struct Refused {
    const char* why;
    at::Tensor (*run)(const at::Tensor& x);
  };
  const Refused refused[] = {
      {"set_requires_grad(false) changes a tensor inside of a captured function",
       [](const at::Tensor& x) {
         const at::Tensor y = x * 2;
         y.set_requires_grad(false);
         return y * 3;
       }},
      {"set_requires_grad(false) changes a tensor inside of a captured function",
       [](const at::Tensor& x) {
         x.set_requires_grad(false);
         return x * 3;
       }},
      {"set_requires_grad(true) is called on what data() gave",
       [](const at::Tensor& x) {
         const at::Tensor p = x.data();
         p.set_requires_grad(true);
         return p * 2;
       }},
      {"requires_grad_() changes a tensor", [](const at::Tensor& x) { return x.data().requires_grad_() * 2; }},
      {"Use detach() first, and make views of what it gives",
       [](const at::Tensor& x) {
         const at::Tensor y = x.detach() * 2, view = y.view(-1);
         y.requires_grad_();
         return view * 3;
       }},
  };
  for (const Refused& each : refused) {
    auto compiled = rehearse::compile(each.run, {.fullgraph = true});
    const auto call = [&] { compiled(at::ones({3}).requires_grad_()); };
    EXPECT_THAT(call, ThrowsMessage<rehearse::capture::NotCapturable>(
                          AllOf(HasSubstr(each.why), HasSubstr("made_leaves_test.cpp:"))));
    // Without fullgraph, the call runs as in eager mode.
    auto loose = rehearse::compile(each.run);
    for (int again = 0; again < 2; ++again) {
      const at::Tensor x = at::ones({3}).requires_grad_(), twin = at::ones({3}).requires_grad_();
      const at::Tensor found = loose(x), expected = each.run(twin);
      EXPECT_THAT(found, BitEqual(expected)) << each.why;
      EXPECT_EQ(found.requires_grad(), expected.requires_grad()) << each.why;
      EXPECT_EQ(x.requires_grad(), twin.requires_grad()) << each.why;
    }
  }
}

// A leaf keeps its gradient by itself, and another argument only after retain_grad().
TEST(MadeLeaves, RetainGrad_MeansTheSameForEachArgument) {
  auto compiled = rehearse::compile([](const at::Tensor& x) {
    x.retain_grad();
    return x * 2;
  });
  for (int call = 0; call < 4; ++call) {
    const at::Tensor leaf = at::ones({2}).requires_grad_();
    const at::Tensor x = call < 2 ? leaf : leaf * 3;
    compiled(x).sum().backward();
    ASSERT_TRUE(x.grad().defined());
    EXPECT_THAT(x.grad(), BitEqual(at::full({2}, 2.0F)));
  }
}

}  // namespace
}  // namespace rehearse_test
