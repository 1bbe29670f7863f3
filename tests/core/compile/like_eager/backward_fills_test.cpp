// SPDX-License-Identifier: BSD-3-Clause
// Gradients that do not simply pass from value to value: a backward that fills a tensor through its views, and a
// backward that returns zeros for any gradient.
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "core/compile/like_eager/like_eager.h"

namespace rehearse::compiler::backward_fills {
namespace {

using rehearse_test::expect_same;
using rehearse_test::observe;
using rehearse_test::Program;
using rehearse_test::Tensors;

Tensors arguments(int call) {
  at::manual_seed(5 + static_cast<std::uint64_t>(call));
  Tensors given = {at::randn({4, 4}) + 3 * at::eye(4), at::randn({4, 3}), at::rand({3}) + 0.1, at::randn({4, 4})};
  for (at::Tensor& each : given) each.requires_grad_();
  return given;
}

// An operator that is not here is a row of tests/data/compile/operators.tsv.
const Program kPrograms[] = {
    {"matrix_exp of a product", [](const Tensors& g) { return Tensors{at::matrix_exp(g[0] / 4).mm(g[1])}; }},
    {"orgqr", [](const Tensors& g) { return Tensors{at::orgqr(g[1], g[2]).sin()}; }},
    {"qr", [](const Tensors& g) { return Tensors{std::get<0>(at::linalg_qr(g[1])), g[2] * 2}; }},
    {"svd", [](const Tensors& g) { return Tensors{std::get<1>(at::linalg_svd(g[0])), g[1].sgn()}; }},
    {"eigh", [](const Tensors& g) { return Tensors{std::get<0>(at::linalg_eigh(g[0] + g[0].t()))}; }},
    {"lu",
     [](const Tensors& g) { return Tensors{std::get<1>(at::linalg_lu(g[1])), std::get<2>(at::linalg_lu(g[0]))}; }},
    {"diagonal", [](const Tensors& g) { return Tensors{at::diagonal(g[0], 1), at::diag_embed(g[2])}; }},
    {"index_select", [](const Tensors& g) { return Tensors{g[1].index_select(0, at::arange(1, 4).fmod(2))}; }},
    {"unfold", [](const Tensors& g) { return Tensors{g[0].unfold(0, 2, 1), g[1].as_strided({3, 2}, {3, 2})}; }},
    {"sort", [](const Tensors& g) { return Tensors{std::get<0>(g[0].sort(1)), std::get<0>(g[1].kthvalue(2, 0))}; }},

    {"sgn", [](const Tensors& g) { return Tensors{at::sgn(g[0])}; }},
    {"sign", [](const Tensors& g) { return Tensors{at::sign(g[0]), g[1] * 2}; }},
    {"bernoulli(p)", [](const Tensors& g) { return Tensors{at::bernoulli(g[2] / 2) * g[1][0]}; }},
    {"rounding", [](const Tensors& g) { return Tensors{g[0].floor(), g[1].ceil(), g[2].round(), g[3].trunc()}; }},
    {"fill_", [](const Tensors& g) { return Tensors{(g[0] * 1).fill_(3), (g[1] * 1).zero_()}; }},
    {"zeroed", [](const Tensors& g) { return Tensors{(g[0] * g[3]).zero_() + g[1].sum()}; }},
    {"uniform_", [](const Tensors& g) { return Tensors{(g[0] * 1).uniform_() * g[3], (g[1] * 1).normal_()}; }},
    {"clamp", [](const Tensors& g) { return Tensors{g[0].clamp(50, 60)}; }},
    {"relu of what is negative", [](const Tensors& g) { return Tensors{at::relu(g[0] - 100)}; }},
    {"heaviside", [](const Tensors& g) { return Tensors{at::where(g[0] > 0, g[3].sgn(), g[3].round())}; }},
    {"normal", [](const Tensors& g) { return Tensors{at::normal(g[0], 0.5), at::poisson(g[2])}; }},
    {"sgn of a complex number", [](const Tensors& g) { return Tensors{at::real(at::sgn(at::complex(g[0], g[3])))}; }},
    {"a filled view",
     [](const Tensors& g) {
       const at::Tensor z = at::zeros({5, 3});
       z.narrow(0, 0, 4).copy_(g[1]);
       z[4].copy_(g[2]);
       return Tensors{z};
     }},
};

TEST(BackwardFills, EachResultAndAllTogether) {
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.name);
    for (const char* const backend : {"aot_eager", "eager"}) {
      auto compiled = compile(program.run, {.backend = backend, .fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        const std::string what = std::string(program.name) + " by " + backend;
        expect_same(observe(compiled, arguments(call)), observe(program.run, arguments(call)), what);
      }
    }
  }
}

// Differentiates one of several results. An input that only the other results depend on gets no gradient.
TEST(BackwardFills, OneOfSeveralResults) {
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.name);
    auto compiled = compile(program.run, {.fullgraph = true});
    const std::size_t results = program.run(arguments(0)).size();
    for (std::size_t one = 0; one < results; ++one) {
      const auto only = [one](auto& function) {
        return [&function, one](const Tensors& given) { return Tensors{function(given)[one]}; };
      };
      auto eager = program.run;
      const std::string what = std::string(program.name) + ", result " + std::to_string(one);
      expect_same(observe(only(compiled), arguments(0)), observe(only(eager), arguments(0)), what);
    }
  }
}

// The caller uses only some of the results. The unused results depend on the same arguments as the used ones, or on
// other arguments.
TEST(BackwardFills, ZerosBesideWhatHasAGradient) {
  const auto function = [](const Tensors& g) { return Tensors{g[0].sgn() + g[1].sum(), g[3] * 2, g[0].round()}; };
  auto compiled = compile(function, {.fullgraph = true});
  for (const std::vector<std::size_t>& kept :
       std::vector<std::vector<std::size_t>>{{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}) {
    const auto some = [&kept](auto& called) {
      return [&called, &kept](const Tensors& given) {
        const Tensors all = called(given);
        Tensors results;
        for (const std::size_t i : kept) results.push_back(all[i]);
        return results;
      };
    };
    expect_same(observe(some(compiled), arguments(0)), observe(some(function), arguments(0)), "zeros");
  }
}

// The tangent comes from sgn()'s backward: a tensor of zeros without memory.
TEST(BackwardFills, TangentsWithoutMemory) {
  const auto function = [](const Tensors& g) {
    const at::Tensor h = g[0] * 2;
    return Tensors{h.lerp(g[3], 1) + h.t() + h};
  };
  auto compiled = compile(function, {.fullgraph = true});
  const auto signs_of = [](auto& called) {
    return [&called](const Tensors& given) { return Tensors{called(given)[0].sgn()}; };
  };
  for (int call = 0; call < 2; ++call) {
    expect_same(observe(signs_of(compiled), arguments(call)), observe(signs_of(function), arguments(call)), "sgn");
  }
}

}  // namespace
}  // namespace rehearse::compiler::backward_fills
