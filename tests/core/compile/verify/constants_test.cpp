// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a function makes equal values anew in each call, verification sees no change. The tests cover tensors
// from lists and vectors, tensors on static memory, and paths through loops with reads. Different values are a change,
// except in static memory, which the graph reads itself.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"

// These tests have a namespace of their own, because a unity build compiles several sources of this program as one.
namespace rehearse::compiler::constants {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;
using Maker = at::Tensor (*)();

float static_table[] = {0.5F, 1.5F, 2.5F};

const std::vector<std::pair<const char*, Maker>> kMakers = {
    {"one float", [] { return at::tensor(2.5); }},
    {"a list of floats", [] { return at::tensor({0.5, 1.5, 2.5}); }},
    {"a list of integers", [] { return at::tensor({1, 2, 3}, at::kLong); }},
    {"a list of shorts", [] { return at::tensor({1, 2, 3}, at::kShort); }},
    {"a vector", [] { return at::tensor(std::vector<double>{3, 1, 2}, at::kFloat); }},
    {"a list, by torch", [] { return torch::tensor({0.5, 1.5, 2.5}); }},
    {"a vector, by torch", [] { return torch::tensor(std::vector<std::int64_t>{4, 5, 6}); }},
    {"NaN", [] { return at::tensor({std::numeric_limits<double>::quiet_NaN(), -0.0, 1.0}); }},
    {"an empty vector", [] { return at::tensor(std::vector<float>()).sum() + 1; }},
    {"a static array", [] { return at::from_blob(static_table, {3}); }},
    {"a part of a static array", [] { return at::from_blob(static_table + 1, {1}).expand({3}); }},
    {"a copy of a vector",
     [] {
       const std::vector<float> values{7, 8, 9};
       return at::from_blob(const_cast<float*>(values.data()), {3}).clone();
     }},
};

bool same(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 0, 0, /*equal_nan=*/true); }

TEST(MadeInside, OfTheSameValues_IsNoChange) {
  for (const auto& [what, make] : kMakers) {
    for (const auto verify : {Verify::FirstHit, Verify::Always}) {
      const auto function = [make = make](const at::Tensor& x) { return x * make() + make(); };
      auto compiled = compile(function, {.verify = verify});
      for (int call = 0; call < 4; ++call) {
        const at::Tensor x = at::full({3}, call + 1.0);
        EXPECT_TRUE(same(compiled(x), function(x))) << what << ", call " << call;
      }
      const bool is_captured = std::string(what) != "a copy of a vector";
      EXPECT_EQ(compiled.stats().compiles, is_captured ? 1 : 0) << what;
      EXPECT_EQ(compiled.explain().refusal.empty(), is_captured) << what << ": " << compiled.explain().refusal;
    }
  }
}

// Each call has a tensor of its own.
TEST(MadeInside, MayBeChangedInPlace) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor sum = at::tensor({1.0, 2.0, 3.0});
    sum.add_(x);
    return sum.mul_(2);
  };
  auto compiled = compile(function, {.fullgraph = true});
  for (int call = 0; call < 3; ++call) EXPECT_THAT(compiled(at::ones({3})), BitEqual(function(at::ones({3}))));
}

TEST(MadeInside, OfOtherValues_IsAChange) {
  for (const bool as_vector : {false, true}) {
    double last = 3;
    auto compiled = compile([&](const at::Tensor& x) {
      return x * (as_vector ? at::tensor(std::vector<double>{1, 2, last}) : at::tensor({1.0, 2.0, last}));
    });
    compiled(at::ones({3}));
    last = 4;
    EXPECT_THROW(compiled(at::ones({3})), StaleCapture);
  }
}

// The graph reads the memory itself, as the code does.
TEST(MadeInside, OfStaticMemory_FollowsIt) {
  static std::int64_t places[] = {0, 1, 2};
  const auto function = [](const at::Tensor& x) { return x + at::from_blob(places, {3}, at::kLong); };
  auto compiled = compile(function, {.fullgraph = true});
  for (int call = 0; call < 4; ++call) {
    EXPECT_THAT(compiled(at::ones({3})), BitEqual(function(at::ones({3})))) << call;
    ++places[call % 3];
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// The memory no longer exists when the graph runs.
TEST(MadeInside, OfMemoryThatTheTensorDoesNotOwn_IsRefused) {
  using OnBorrowed = at::Tensor (*)(const at::Tensor& x);
  const OnBorrowed of_a_vector = [](const at::Tensor& x) {
    std::vector<float> values{1, 2, 3};
    return x * at::from_blob(values.data(), {3});
  };
  const OnBorrowed of_an_array = [](const at::Tensor& x) {
    float values[] = {1, 2, 3};
    return x * at::from_blob(values, {3});
  };
  for (const OnBorrowed function : {of_a_vector, of_an_array}) {
    auto compiled = compile(function);
    for (int call = 0; call < 3; ++call) EXPECT_THAT(compiled(at::ones({3})), BitEqual(function(at::ones({3}))));
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("memory that it does not own"));
    auto whole = compile(function, {.fullgraph = true});
    EXPECT_THAT([&] { whole(at::ones({3})); }, testing::Throws<std::exception>());
  }
}

// If a tensor lives on after the call, verification compares its identity, because its values may change later.
TEST(Kept, AnotherTensorOfTheSameValues_IsAChange) {
  at::Tensor kept = at::ones({3});
  auto compiled = compile([&](const at::Tensor& x) { return x * kept; });
  compiled(at::ones({3}));
  kept = at::ones({3});
  EXPECT_THROW(compiled(at::ones({3})), StaleCapture);
}

struct ExpertsImpl : torch::nn::Module {
  ExpertsImpl() : gate(register_module("gate", torch::nn::Linear(8, 4))) {
    for (int i = 0; i < 4; ++i)
      experts.push_back(register_module("expert" + std::to_string(i), torch::nn::Linear(8, 8)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor chosen = gate(x).argmax(-1);
    at::Tensor out = at::zeros_like(x);
    for (std::size_t i = 0; i < experts.size(); ++i) {
      const at::Tensor mask = chosen == static_cast<std::int64_t>(i);
      if (!mask.any().item<bool>()) continue;
      const at::Tensor rows = mask.nonzero().squeeze(1);
      out.index_add_(0, rows, experts[i](x.index_select(0, rows)));
    }
    return out;
  }

  torch::nn::Linear gate;
  std::vector<torch::nn::Linear> experts;
};
TORCH_MODULE(Experts);

std::vector<at::Tensor> batches() {
  std::vector<at::Tensor> all;
  for (int seed = 0; seed < 12; ++seed) {
    at::manual_seed(seed);
    all.push_back(at::randn({2 + seed % 3, 8}));
    all.push_back(all.back());
  }
  return all;
}

template <class Net, class Compiled>
void expect_same_training(Net& net, Compiled& compiled) {
  for (const at::Tensor& x : batches()) {
    net->zero_grad();
    const at::Tensor expected = net->forward(x);
    expected.square().sum().backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : net->parameters()) {
      gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    }
    net->zero_grad();
    const at::Tensor found = compiled(x);
    EXPECT_THAT(found, BitEqual(expected));
    found.square().sum().backward();
    const auto parameters = net->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_THAT(parameters[i].grad(), BitEqual(gradients[i])) << i;
  }
}

TEST(LoopOfReads, AMixtureOfExperts_TrainsAsInEagerMode) {
  for (const char* backend : {"eager", "aot_eager"}) {
    Experts net;
    auto compiled = compile(net, {.backend = backend, .recompile_limit = 64});
    expect_same_training(net, compiled);
    EXPECT_EQ(compiled.explain().refusal, "");
    EXPECT_GT(compiled.stats().hits, 0);
  }
}

// Compiling the backward of the first segment adds conditions on sizes. Verification must not report these conditions
// as a change of the code.
TEST(LoopOfReads, BehindABackwardThatFixesSizes_IsNoChange) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor inverse = at::linalg_inv(at::block_diag({x, x})) + x.trace();
    if ((inverse.sum() > 0).item<bool>()) return inverse.sum(0) * x.sym_size(0).guard_int(__FILE__, __LINE__) + 1;
    return inverse.sum(1) - 3;
  };
  const auto without_a_guard = [](const at::Tensor& x) {
    const at::Tensor inverse = at::linalg_inv(at::block_diag({x, x})) + x.trace();
    return (inverse.sum() > 0).item<bool>() ? inverse.sum(0) * 2 : inverse.sum(1) - 3;
  };
  const auto expect_like_eager = [](const auto& code) {
    auto compiled = compile(code);
    for (const int size : {3, 3, 4, 4, 5, 5, 3, 4, 6, 6}) {
      for (const double sign : {1.0, -1.0}) {
        at::manual_seed(size);
        const at::Tensor x = ((at::rand({size, size}, at::kDouble) + at::eye(size) * 3) * sign).requires_grad_();
        const at::Tensor expected = code(x), gradient = torch::autograd::grad({expected.sum()}, {x})[0];
        const at::Tensor found = compiled(x);
        EXPECT_THAT(found, BitEqual(expected)) << size;
        EXPECT_THAT(torch::autograd::grad({found.sum()}, {x})[0], BitEqual(gradient)) << size;
      }
    }
  };
  expect_like_eager(function);
  expect_like_eager(without_a_guard);
}

}  // namespace
}  // namespace rehearse::compiler::constants
