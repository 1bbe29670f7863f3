// SPDX-License-Identifier: BSD-3-Clause
// Contract: some arguments require grad and others do not. After a call, each argument and each result requires grad
// exactly if it does in eager mode, and has the same gradient.
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>

#include <rehearse/compile/compile.h>

#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test {
namespace {

using at::Tensor;

Tensors joined(std::initializer_list<Tensors> lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Inputs: three matrices of 3 x 3.
const Program kMixedPrograms[] = {
    {"losses that broadcast",
     [](const Tensors& g) {
       namespace F = torch::nn::functional;
       return Tensors{F::mse_loss(g[0], g[1]), F::smooth_l1_loss(g[1], g[2]), F::huber_loss(g[2], g[0])};
     }},
    {"broadcast_tensors() of equal sizes", [](const Tensors& g) { return at::broadcast_tensors(g); }},
    {"broadcast_tensors() of other sizes",
     [](const Tensors& g) { return at::broadcast_tensors({g[0], g[1][0], g[2].slice(1, 0, 1)}); }},
    {"atleast_1d() and the like of lists",
     [](const Tensors& g) {
       return joined({at::atleast_1d(g), at::atleast_2d({g[1], g[0]}), at::atleast_3d({g[2], g[0][0]})});
     }},
    {"copies to the CPU", [](const Tensors& g) { return at::_to_cpu(g); }},
    {"meshgrid()", [](const Tensors& g) { return at::meshgrid({g[0][0], g[1][0], g[2][0]}, "ij"); }},
    {"forms of another tensor",
     [](const Tensors& g) {
       return Tensors{g[0][0].expand_as(g[1]),
                      g[0].view_as(g[1]),
                      g[2].t().reshape_as(g[1]),
                      g[0].type_as(g[1]),
                      g[0].to(g[1]),
                      g[0].type_as(g[2].to(at::kFloat)),
                      g[1].expand_as(g[0]),
                      g[1].to(g[2].to(at::kFloat)),
                      g[2].view(at::kLong)};
     }},
    {"views of detached tensors",
     [](const Tensors& g) {
       const Tensor detached = g[0].detach();
       return Tensors{detached.expand_as(g[0]), g[1].view_as(g[1].detach()), detached.to(g[0]),
                      at::broadcast_tensors({detached, g[0]})[0]};
     }},
    {"operators that do nothing",
     [](const Tensors& g) {
       return Tensors{at::dropout(g[0], 0.5, false),
                      at::feature_alpha_dropout(g[1], 0.5, false) + g[2],
                      g[0].contiguous(),
                      g[1].to(at::kDouble),
                      at::positive(g[2]),
                      g[0].resolve_conj(),
                      at::real(g[1]),
                      at::atleast_1d(g[2])};
     }},
    {"products of one factor",
     [](const Tensors& g) {
       return Tensors{at::einsum("ij->ij", {g[0]}), at::einsum("ij,jk", {g[0], g[1]}), at::cartesian_prod({g[2][0]}),
                      at::chain_matmul({g[1]}), at::matrix_power(g[2], 1)};
     }},
    {"copies that share memory",
     [](const Tensors& g) {
       return Tensors{at::_unsafe_view(g[0], {9}), at::unsafe_split(g[1], 2)[0], at::unsafe_chunk(g[2], 2)[1]};
     }},
    {"views of one of several tensors",
     [](const Tensors& g) {
       return joined(
           {g[0].tensor_split(2), g[1].unbind(), g[2].split(2), {g[0].diagonal(), g[1].as_strided({2}, {3})}});
     }},
    {"operators on several tensors",
     [](const Tensors& g) {
       return Tensors{at::lerp(g[0], g[1], 0.3),      at::addcmul(g[0], g[1], g[2]), at::where(g[0] > 0, g[1], g[2]),
                      at::stack({g[0], g[1]}),        at::block_diag({g[1], g[2]}),  at::cat({g[2]}),
                      at::hstack({g[0][0], g[1][0]}), at::empty_like(g[0]).zero_()};
     }},
    {"changes in place",
     [](const Tensors& g) {
       const Tensor a = (g[0] * 1).add_(g[1]), b = (g[2] * 1).copy_(g[0]),
                    c = at::zeros({3, 3}, at::kDouble).addmm_(g[0], g[1]);
       const Tensor d = at::zeros({3, 3}, at::kDouble).masked_fill_(g[0] > 0, g[2].sum());
       return Tensors{a, b, c, d};
     }},
    {"changes of lists in place",
     [](const Tensors& g) {
       const Tensors list = {g[0] * 1, g[1] * 1}, other = {g[1] * 1, g[2] * 1};
       at::_foreach_add_(list, {g[2], g[0]});
       at::_foreach_mul_(other, 2.0);
       return joined({list, other});
     }},
    {"views of what changes in place",
     [](const Tensors& g) {
       const Tensor base = g[0] * 1, view = at::broadcast_tensors({base[0], g[1]})[0];
       base.mul_(g[2]);
       return Tensors{base, view};
     }},
};

// Each bit of `mask` says whether an input requires grad.
Tensors inputs(unsigned mask) {
  at::manual_seed(7);
  Tensors made;
  for (unsigned i = 0; i < 3; ++i)
    made.push_back(at::randn({3, 3}, at::kDouble).set_requires_grad((mask >> i & 1) != 0));
  return made;
}

TEST(MixedGradients, LikeEager) {
  for (const Program& program : kMixedPrograms) {
    for (unsigned mask = 0; mask < 8; ++mask) {
      for (const bool grad : {true, false}) {
        const auto in_mode = [&](auto& function) {
          return [&](const Tensors& given) {
            const at::AutoGradMode mode(grad);
            return function(given);
          };
        };
        auto compiled = rehearse::compile(program.run);
        const std::string what = std::string(program.name) + ", " + std::to_string(mask) + (grad ? "" : ", no grad");
        for (int call = 0; call < 2; ++call) {
          expect_same(observe(in_mode(compiled), inputs(mask)), observe(in_mode(program.run), inputs(mask)), what);
        }
        EXPECT_EQ(compiled.explain().refusal, "") << what;
      }
    }
  }
}

TEST(MixedGradients, OfATargetIntoWhichEachStepCopies) {
  auto loss = rehearse::compile([](const Tensor& x, const Tensor& y) { return torch::nn::functional::mse_loss(x, y); });
  const Tensor target = at::zeros({4});
  for (int step = 0; step < 3; ++step) {
    target.copy_(at::full({4}, step));
    loss(at::ones({4}).requires_grad_(), target).backward();
    EXPECT_FALSE(target.requires_grad());
    EXPECT_FALSE(target.grad().defined());
  }
}

}  // namespace
}  // namespace rehearse_test
