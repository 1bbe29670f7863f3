// SPDX-License-Identifier: BSD-3-Clause
// Contract: compile() refuses hooks that no recorded backward can contain, and names the line. Without fullgraph, they
// run as in eager mode.
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/error_of.h"

namespace rehearse::compiler::refused_hooks {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;

struct Refused {
  const char* name;
  at::Tensor (*run)(const at::Tensor& x, const at::Tensor& w);
  const char* why;
};

at::Tensor kept;  // the tensor that a hook has kept

const Refused kRefused[] = {
    {"reads its gradient",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       y.register_hook([](const at::Tensor& g) { return g.sum().item<double>() > 0 ? g * 2 : g * 3; });
       return y.cos();
     },
     "needs the data of a fake tensor"},
    {"reads its gradient, and catches",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       y.register_hook([](const at::Tensor& g) {
         try {
           return g * g.sum().item<double>();
         } catch (const std::exception&) {
           return g * 100;
         }
       });
       return y.cos();
     },
     "needs the data of a fake tensor"},
    {"keeps its gradient",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       y.register_hook([](const at::Tensor& g) { kept = g; });
       return y.cos();
     },
     "it keeps a tensor that it has got or made"},
    {"keeps what it makes",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       y.register_hook([](const at::Tensor& g) { kept = g * 2; });
       return y.cos();
     },
     "it keeps a tensor that it has got or made"},
    {"reads its gradient, of a tensor that is used",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       const at::Tensor z = y.cos();
       y.register_hook([](const at::Tensor& g) { return (g.sum() > 0).item<bool>() ? g * 2 : g * 3; });
       return z + y;
     },
     "needs the data of a fake tensor"},
    {"throws",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       y.register_hook([](const at::Tensor& g) {
         if (g.defined()) throw std::invalid_argument("no gradient, please");
       });
       return y.detach() + x;
     },
     "it throws where it is captured: no gradient, please"},
    {"leaves grad mode on",
     [](const at::Tensor& x, const at::Tensor&) {
       const at::Tensor y = x.sin();
       y.register_hook([](const at::Tensor&) { at::GradMode::set_enabled(true); });
       return y.detach() + x;
     },
     "it switches grad mode and leaves it so"},
    {"registers another hook",
     [](const at::Tensor& x, const at::Tensor& w) {
       const at::Tensor y = x.sin(), z = w.cos();
       y.register_hook([z](const at::Tensor&) { z.register_hook([](const at::Tensor& g) { return g * 2; }); });
       return y * z;
     },
     "another hook registers it"},
    {"has a checkpoint",
     [](const at::Tensor& x, const at::Tensor& w) {
       const at::Tensor y = x.sin();
       y.register_hook([w](const at::Tensor& gradient) {
         const at::AutoGradMode on(true);
         return checkpoint([w](const at::Tensor& h) { return h * w; }, gradient).detach();
       });
       return y.cos();
     },
     "it has a checkpoint"},
    {"of an argument",
     [](const at::Tensor& x, const at::Tensor&) {
       x.register_hook([](const at::Tensor& g) { return g * 2; });
       return x.cos();
     },
     "that is an argument, a parameter, a constant or a leaf"},
    {"of a leaf that is made inside",
     [](const at::Tensor& x, const at::Tensor& w) {
       const at::Tensor p = w.detach().clone().requires_grad_();
       p.register_hook([](const at::Tensor& g) { return g * 2; });
       return x * p;
     },
     "that is an argument, a parameter, a constant or a leaf"},
    {"of a tensor in front of a checkpoint",
     [](const at::Tensor& x, const at::Tensor& w) {
       const at::Tensor y = x.sin();
       return checkpoint(
           [y, w](const at::Tensor& h) {
             y.register_hook([](const at::Tensor& g) { return g * 2; });
             return h * w;
           },
           w);
     },
     "the tensor was made outside of the checkpoint whose code registers the hook"},
};

TEST(TensorHooks, WhatNoBackwardCanHold_IsRefused) {
  for (const Refused& program : kRefused) {
    auto compiled = compile(program.run, {.fullgraph = true});
    const at::Tensor x = at::full({3}, 0.5).requires_grad_(), w = at::ones({3}).requires_grad_();
    const std::string error = error_of([&] { compiled(x, w); });
    EXPECT_THAT(error, HasSubstr("a hook is registered on a tensor inside of a captured function")) << program.name;
    EXPECT_THAT(error, HasSubstr(program.why)) << program.name;
    EXPECT_THAT(error, HasSubstr("refused_hooks_test.cpp:")) << program.name;
    kept.reset();
  }
}

// Without fullgraph, the rest of the function runs in eager mode, and the hook runs in each backward.
TEST(TensorHooks, ARefusedOne_IsEagerModesFromThereOn) {
  for (const std::size_t i : {0, 1, 2, 3, 4}) {
    const Refused& program = kRefused[i];
    auto compiled = compile(program.run);
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = at::full({3}, 0.5 + call).requires_grad_(), same = x.detach().requires_grad_();
      const at::Tensor w = at::ones({3});
      compiled(x, w).sum().backward();
      const at::Tensor kept_by_compiled = std::exchange(kept, {});
      program.run(same, w).sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << program.name << call;
      EXPECT_THAT(kept_by_compiled, BitEqual(kept)) << program.name << call;
      kept.reset();
    }
    EXPECT_THAT(compiled.explain().refusal, HasSubstr(program.why)) << program.name;
  }
}

TEST(TensorHooks, BehindARead_IsRefused) {
  using Function = at::Tensor (*)(const at::Tensor& x);
  const std::pair<Function, const char*> given[] = {{[](const at::Tensor& x) {
                                                       const at::Tensor y = x.sin();
                                                       if (y.sum().item<double>() > -100)
                                                         y.register_hook([](const at::Tensor& g) { return g * 2; });
                                                       return y.cos();
                                                     },
                                                     "in front of a read or an eager region"},
                                                    {[](const at::Tensor& x) {
                                                       const at::Tensor y =
                                                           eager_region([](const at::Tensor& z) { return z.sin(); }, x);
                                                       y.register_hook([](const at::Tensor& g) { return g * 2; });
                                                       return y.cos();
                                                     },
                                                     "an eager region has given the tensor"}};
  for (const auto& [function, why] : given) {
    auto compiled = compile(function);
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = at::full({3}, 0.5).requires_grad_(), same = x.detach().requires_grad_();
      compiled(x).sum().backward();
      function(same).sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << why << call;
    }
    EXPECT_THAT(compiled.explain().refusal, HasSubstr(why));
  }
}

// The graph in front of the read has used the tensor, so its gradient flows inside of the graph. The first call throws
// if the hook would miss it. Later calls run in eager mode.
TEST(TensorHooks, BehindARead_SeeTheWholeGradientOrThrow) {
  struct Given {
    bool uses_it, retains;
  };
  for (const auto [uses_it, retains] :
       {Given{true, false}, Given{true, true}, Given{false, false}, Given{false, true}}) {
    const auto function = [=](const at::Tensor& x) {
      const at::Tensor y = x.sin(), z = (uses_it ? y : x).cumsum(0), of_numbers = y.detach().exp();
      if ((x.sum() > -100).item<bool>() && retains) y.retain_grad();
      if (!retains) y.register_hook([](const at::Tensor& g) { return g * 2; });
      return std::vector<at::Tensor>{y, z + y * of_numbers};
    };
    const auto gradients = [](auto& called) {
      const at::Tensor x = at::full({3}, 0.5).requires_grad_();
      const std::vector<at::Tensor> results = called(x);
      results[1].sum().backward();
      const at::Tensor& y = results[0];
      return std::pair(x.grad(), y.retains_grad() ? y.grad() : at::Tensor());
    };
    auto compiled = compile(function);
    if (uses_it) {
      EXPECT_THROW(gradients(compiled), capture::NotCapturable);
    }
    for (int call = 0; call < 2; ++call) {
      const auto [of_x, of_y] = gradients(compiled);
      const auto [expected_of_x, expected_of_y] = gradients(function);
      EXPECT_THAT(of_x, BitEqual(expected_of_x)) << uses_it << retains << call;
      EXPECT_THAT(of_y, BitEqual(expected_of_y)) << uses_it << retains << call;
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::refused_hooks
