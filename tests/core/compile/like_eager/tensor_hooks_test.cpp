// SPDX-License-Identifier: BSD-3-Clause
// Contract: a hook that captured code registers on a tensor that it has computed is part of the graph. The backward of
// each call does what the hook does in eager mode, with the values that the hook's closure got in that call.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/checkpoint.h>

#include "core/compile/like_eager/like_eager.h"

namespace rehearse::compiler::hooks {
namespace {

using rehearse_test::expect_same;
using rehearse_test::observe;
using rehearse_test::Program;
using rehearse_test::Tensors;

// Inputs: g[0] of sizes [n, 4] and g[1] of sizes [4, 4] are leaves that require a gradient; g[2] of sizes [n, 4]
// requires none.
const Program kPrograms[] = {
    {"a factor",
     [](const Tensors& g) {
       const at::Tensor y = g[0].sin();
       y.register_hook([](const at::Tensor& gradient) { return gradient * 7; });
       return Tensors{y.cos()};
     }},
    {"a closure of a tensor made before, one made of it inside, and an argument",
     [](const Tensors& g) {
       const at::Tensor y = g[0].matmul(g[1]).sin();
       const at::Tensor before = y + 1;
       y.register_hook([=](const at::Tensor& gradient) { return gradient * before + (y - g[2]) * g[1].sum(); });
       return Tensors{y.sin()};
     }},
    {"used before and behind the registration",
     [](const Tensors& g) {
       const at::Tensor y = g[0].exp();
       const at::Tensor z = y.sin();
       y.register_hook([](const at::Tensor& gradient) { return gradient.sin(); });
       return Tensors{z.sum(), y.cos()};
     }},
    {"of a result",
     [](const Tensors& g) {
       const at::Tensor y = g[0].matmul(g[1]);
       y.register_hook([](const at::Tensor& gradient) { return gradient * gradient; });
       return Tensors{y, y.tanh()};
     }},
    {"two hooks, and one that sees nothing",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { return gradient + 1; });
       y.register_hook([](const at::Tensor&) {});
       y.register_hook([c = g[2]](const at::Tensor& gradient) { return gradient * c; });
       return Tensors{y.cos()};
     }},
    {"that gives back what it got",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { return gradient; });
       return Tensors{y.cos()};
     }},
    {"that gives back something else",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([c = g[2]](const at::Tensor&) { return c; });
       return Tensors{y.cos()};
     }},
    {"that changes the gradient in place",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { gradient.mul_(3); });
       return Tensors{y.cos()};
     }},
    {"that counts in an argument",
     [](const Tensors& g) {
       const at::Tensor y = g[0].exp();
       y.register_hook([c = g[2]](const at::Tensor& gradient) { c.add_(gradient.sum()); });
       return Tensors{y.cos(), g[2] + 1};
     }},
    {"that counts in an argument which the function changes too",
     [](const Tensors& g) {
       const at::Tensor y = g[0].exp();
       y.register_hook([c = g[2]](const at::Tensor& gradient) {
         c.add_(1);
         return gradient * c;
       });
       g[2].mul_(2);
       return Tensors{y.cos() * g[2].clone()};
     }},
    {"a closure that is changed behind the registration",
     [](const Tensors& g) {
       const at::Tensor scale = g[2] * 2;
       const at::Tensor y = g[0].exp();
       y.register_hook([=](const at::Tensor& gradient) { return gradient * scale; });
       scale.add_(1);
       return Tensors{y.cos()};
     }},
    {"a tensor that is changed in place behind the registration",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
       y.mul_(3);
       y.register_hook([](const at::Tensor& gradient) { return gradient + 1; });
       return Tensors{y.cos()};
     }},
    {"an item of a list",
     [](const Tensors& g) {
       const auto parts = g[0].exp().chunk(2, 1);
       parts[1].register_hook([](const at::Tensor& gradient) { return gradient * 5; });
       return Tensors{(parts[0] * parts[1]).sum()};
     }},
    {"a view of an argument, inside",
     [](const Tensors& g) {
       const at::Tensor row = g[0].select(0, 0);
       row.register_hook([](const at::Tensor& gradient) { return gradient.cos(); });
       return Tensors{row.exp().sum() + g[0].sum()};
     }},
    {"a view of an argument, as a result",
     [](const Tensors& g) {
       const at::Tensor row = g[0].select(0, 0);
       row.register_hook([](const at::Tensor& gradient) { return gradient.cos(); });
       return Tensors{row, row.unsqueeze(0), g[0].exp()};
     }},
    {"that asks for sizes and layout",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) {
         return gradient.contiguous().view({-1}).view_symint({gradient.sym_size(0), 4}) * 2;
       });
       return Tensors{y.sum()};
     }},
    {"a gradient that lies otherwise",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { return gradient.contiguous().sin(); });
       return Tensors{y.t().matmul(g[2])};
     }},
    {"a draw",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { return gradient * at::rand_like(gradient); });
       return Tensors{y.cos(), at::rand({2})};
     }},
    {"a constant that the hook makes",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) { return gradient * at::tensor({1., 2., 3., 4.}, at::kDouble); });
       return Tensors{y.cos()};
     }},
    {"a hook that is removed again",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       const at::Tensor scale = g[2].exp();
       y.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
       const unsigned second = y.register_hook([=](const at::Tensor& gradient) { return gradient * scale; });
       y.register_hook([](const at::Tensor& gradient) { return gradient + 1; });
       y.remove_hook(second);
       y.remove_hook(second);
       return Tensors{y.cos() * static_cast<double>(second)};
     }},
    {"inside of a checkpoint",
     [](const Tensors& g) {
       return Tensors{checkpoint(
                          [w = g[1]](const at::Tensor& h) {
                            const at::Tensor y = h.matmul(w);
                            y.register_hook([=](const at::Tensor& gradient) { return gradient.matmul(w); });
                            return y.exp();
                          },
                          g[0])
                          .cos()};
     }},
    {"of a checkpoint's result",
     [](const Tensors& g) {
       const at::Tensor y = checkpoint([w = g[1]](const at::Tensor& h) { return h.matmul(w).exp(); }, g[0]);
       y.register_hook([](const at::Tensor& gradient) { return gradient * 3; });
       return Tensors{y.cos()};
     }},
    {"grad mode switched on inside",
     [](const Tensors& g) {
       const at::Tensor y = g[0] * g[2];
       y.register_hook([](const at::Tensor& gradient) {
         const at::AutoGradMode on(true);
         return (gradient * 2).detach();
       });
       return Tensors{y.cos()};
     }},
    {"what is used outside for the first time in the hook",
     [](const Tensors& g) {
       const at::Tensor y = g[0].sin();
       y.register_hook([g](const at::Tensor& gradient) { return gradient * g[1].sum() * g[2].detach(); });
       return Tensors{y.matmul(g[1]).cos() + g[2].sum()};
     }},
};

Tensors given(std::int64_t rows) {
  at::manual_seed(static_cast<std::uint64_t>(rows));
  return {at::randn({rows, 4}, at::kDouble).requires_grad_(), at::randn({4, 4}, at::kDouble).requires_grad_(),
          at::randn({rows, 4}, at::kDouble)};
}

std::string text_of(const Explanation& explanation) {
  std::string text;
  for (const auto& piece : explanation.pieces()) text += piece.text;
  return text;
}

TEST(TensorHooks, HaveEagerModesGradients) {
  for (const Program& program : kPrograms) {
    for (const char* const backend : {"eager", "aot_eager"}) {
      const std::string what = std::string(program.name) + ", " + backend;
      auto compiled = compile(program.run, {.backend = backend, .fullgraph = true});
      for (const std::int64_t rows : {3, 3, 5, 6}) {
        expect_same(observe(compiled, given(rows)), observe(program.run, given(rows)),
                    what + " [" + std::to_string(rows) + "]");
      }
      EXPECT_LE(compiled.stats().compiles, 2) << what;
      EXPECT_EQ(text_of(compiled.explain()).find("rehearse.hook"), std::string::npos) << what;
    }
  }
}

// A graph runs under eager autograd if no backward graph could contain its hooks. Only the programs in `eager` have
// such hooks.
TEST(TensorHooks, AreInTheBackwardGraph) {
  // These programs register a hook on a result. A hook that a caller registers on the same result must run after it.
  const std::set<std::string> eager = {"a view of an argument, as a result", "of a result"};
  for (const Program& program : kPrograms) {
    auto compiled = compile(program.run, {.fullgraph = true});
    compiled(given(3));
    for (const auto& entry : compiled.explain().entries) {
      for (const auto& graph : entry.graphs)
        EXPECT_EQ(!graph.eager_because.empty(), eager.contains(program.name)) << program.name;
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::hooks
