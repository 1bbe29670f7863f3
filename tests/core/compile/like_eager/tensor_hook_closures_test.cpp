// SPDX-License-Identifier: BSD-3-Clause
// Contract: in a backward(), a captured hook runs if eager mode runs it, with the values that its closure got when the
// function was called.
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/compile/watch.h>

#include "bit_equal.h"
#include "core/compile/error_of.h"

namespace rehearse::compiler::hook_closures {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;

// The hook triples the gradient, so the gradient of x is three times the derivative by central differences.
TEST(TensorHooks, AreWhatDifferencesSay) {
  const auto forward = [](const at::Tensor& x) { return x.sin().exp().sum(); };
  auto compiled = compile([](const at::Tensor& x) {
    const at::Tensor y = x.sin();
    y.register_hook([](const at::Tensor& gradient) { return gradient * 3; });
    return y.exp().sum();
  });
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = at::randn({5}, at::kDouble).requires_grad_();
    compiled(x).backward();
    constexpr double kStep = 1e-6;
    for (std::int64_t i = 0; i < 5; ++i) {
      const at::Tensor shift = at::zeros({5}, at::kDouble);
      shift[i] = kStep;
      const at::NoGradGuard no_grad;
      const double slope = (forward(x + shift) - forward(x - shift)).item<double>() / (2 * kStep);
      EXPECT_NEAR(x.grad()[i].item<double>(), 3 * slope, 1e-7);
    }
  }
}

// Guards compare numbers and watched values in a hook's closure, as in other code.
TEST(TensorHooks, NumbersOfTheClosure) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    double watched = 2;
    const auto function = [&](const at::Tensor& x, double given, const c10::SymInt& count) {
      const at::Tensor y = x.sin();
      y.register_hook([&, given, count](const at::Tensor& gradient) {
        return gradient * given + at::ones_symint({count}).sum() * rehearse::watch(watched);
      });
      return y.cos();
    };
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 12; ++call) {
      const int given = call / 2 % 2;
      watched = call % 2;
      const at::Tensor x = at::full({3}, call, at::kDouble).requires_grad_(), same = x.detach().requires_grad_();
      compiled(x, given, c10::SymInt(call + 2)).sum().backward();
      function(same, given, c10::SymInt(call + 2)).sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend << call;
    }
    EXPECT_EQ(compiled.stats().hits, 7) << backend;  // after all pairs of numbers are compiled and the count is dynamic
  }
}

// A hook must not run if the backward does not pass through its tensor.
TEST(TensorHooks, AreCalledWhereAGradientComes) {
  const auto function = [](const at::Tensor& x, const at::Tensor& calls) {
    const at::Tensor a = x.sin(), b = x.cos();
    a.register_hook([calls](const at::Tensor& gradient) {
      calls[0].add_(1);
      return gradient + 1;
    });
    b.register_hook([calls](const at::Tensor& gradient) {
      calls[1].add_(1);
      return gradient + 2;
    });
    return std::vector<at::Tensor>{a.exp(), b.exp()};
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    const at::Tensor calls = at::zeros({2}, at::kLong), eager_calls = calls.clone();
    for (const int which : {0, 1, 1, 2}) {
      const at::Tensor x = at::randn({3}, at::kDouble).requires_grad_(), same = x.detach().requires_grad_();
      const auto backward = [&](const std::vector<at::Tensor>& results) {
        (which == 2 ? results[0].sum() + results[1].sum() : results[which].sum()).backward();
      };
      backward(compiled(x, calls));
      backward(function(same, eager_calls));
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend;
      EXPECT_THAT(calls, BitEqual(eager_calls)) << backend << calls;
    }
    EXPECT_EQ(calls[1].item<int>(), 3) << backend;
  }
}

// Both calls come before both backwards. Each hook has the closure of its own call.
TEST(TensorHooks, KeepTheClosureOfTheirCall) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(
        [](const at::Tensor& x, const at::Tensor& scale, const at::Tensor& calls) {
          const at::Tensor y = x.sin();
          y.register_hook([=](const at::Tensor& gradient) {
            calls.add_(1);
            return gradient * scale;
          });
          return y.sum();
        },
        {.backend = backend, .fullgraph = true});
    const at::Tensor calls = at::zeros({}, at::kLong);
    const at::Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
    const at::Tensor first = compiled(a, at::full({2}, 88.), calls), second = compiled(b, at::full({2}, 99.), calls);
    second.backward();
    first.backward();
    EXPECT_THAT(a.grad(), BitEqual(at::ones({2}).cos() * 88)) << backend;
    EXPECT_THAT(b.grad(), BitEqual(at::ones({2}).cos() * 99)) << backend;
    EXPECT_EQ(calls.item<int>(), 2) << backend;
    EXPECT_EQ(compiled.stats().compiles, 1) << backend;
  }
}

TEST(TensorHooks, AnotherShape_IsEagerModesError) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x.sin();
    y.register_hook([](const at::Tensor& gradient) { return gradient.sum(); });
    return y.sum();
  };
  const at::Tensor x = at::ones({3}).requires_grad_();
  const std::string eager = error_of([&] { function(x).backward(); });
  EXPECT_THAT(eager, HasSubstr("has changed the size of value"));
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor result = compiled(x);
      EXPECT_THAT(error_of([&] { result.backward(); }), HasSubstr("has changed the size of value")) << backend;
    }
  }
}

TEST(TensorHooks, OfWhatRequiresNoGrad_AreEagerModesError) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x.sin();
    y.register_hook([](const at::Tensor& gradient) { return gradient; });
    return y;
  };
  auto compiled = compile(function, {.fullgraph = true});
  EXPECT_THAT(error_of([&] { compiled(at::ones({3})); }), HasSubstr("doesn't require gradient"));
}

// Hooks before and after a read. The first hook's tensor is also used after the read, in another segment.
TEST(TensorHooks, InFrontOfARead_AreInTheirSegment) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x.sin();
    y.register_hook([](const at::Tensor& g) { return g * 2; });
    const at::Tensor z = (y.exp().sum() > 0).item<bool>() ? y.cos() : y;
    z.register_hook([y](const at::Tensor& g) { return g + y; });
    return z.exp();
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(function, {.backend = backend});
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = at::randn({3}, at::kDouble).requires_grad_(), same = x.detach().requires_grad_();
      compiled(x).sum().backward();
      function(same).sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(same.grad())) << backend << call;
    }
    EXPECT_EQ(compiled.explain().refusal, "") << backend;
    EXPECT_EQ(compiled.stats().graphs, 2) << backend;
  }
}

// Verification compares the code of the hook when the function runs again.
TEST(TensorHooks, OtherCode_IsFound) {
  double factor = 2;
  auto compiled = compile([&](const at::Tensor& x) {
    const at::Tensor y = x.sin();
    y.register_hook([&](const at::Tensor& g) { return g * factor; });
    return y.cos();
  });
  const at::Tensor x = at::ones({3}).requires_grad_();
  compiled(x);
  factor = 3;
  EXPECT_THROW(compiled(x), StaleCapture);
}

// Two graphs that differ only in their hooks' code make two files in the cache, and each finds its own.
TEST(TensorHooks, InTheCacheOnDisk) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "graphs with hooks";
  std::filesystem::remove_all(folder);
  const auto twice = [](const at::Tensor& x, const at::Tensor& calls) {
    const at::Tensor y = x.sin();
    y.register_hook([calls](const at::Tensor& g) { return calls.add_(1), g * 2; });
    return y.exp().sum();
  };
  const auto thrice = [](const at::Tensor& x, const at::Tensor& calls) {
    const at::Tensor y = x.sin();
    y.register_hook([calls](const at::Tensor& g) { return calls.add_(1), g * 3; });
    return y.exp().sum();
  };
  const auto expect_gradients = [&](auto function, double factor, int hits) {
    auto compiled = compile(function, {.cache_dir = folder.string()});
    const at::Tensor x = at::ones({3}, at::kDouble).requires_grad_(), y = at::ones({3}, at::kDouble).requires_grad_();
    const at::Tensor calls = at::zeros({}, at::kLong);
    const at::Tensor first = compiled(x, calls), second = compiled(y, calls);
    first.backward();
    second.backward();
    const at::Tensor expected = x.detach().sin().exp() * factor * x.detach().cos();
    EXPECT_THAT(x.grad(), BitEqual(expected)) << factor;
    EXPECT_THAT(y.grad(), BitEqual(expected)) << factor;
    EXPECT_EQ(calls.item<int>(), 2) << factor;
    EXPECT_EQ(compiled.stats().cache_hits, hits) << factor;
  };
  expect_gradients(twice, 2, 0);
  expect_gradients(thrice, 3, 0);
  expect_gradients(twice, 2, 1);
  expect_gradients(thrice, 3, 1);
}

TEST(TensorHooks, BackwardTwice) {
  const auto function = [](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = x * w;
    y.register_hook([w](const at::Tensor& g) { return g * g + w; });
    return y.exp().sum();
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    const at::Tensor x = at::randn({3}, at::kDouble).requires_grad_(), w = at::randn({3}, at::kDouble).requires_grad_();
    const auto gradients = [&](const at::Tensor& result) {
      std::vector<at::Tensor> all = torch::autograd::grad({result}, {x, w}, {}, true);
      all.push_back(torch::autograd::grad({result}, {w}, {}, true)[0]);
      all.push_back(torch::autograd::grad({result}, {x})[0]);
      return all;
    };
    for (int call = 0; call < 2; ++call) {
      const auto found = gradients(compiled(x, w)), expected = gradients(function(x, w));
      EXPECT_THAT(found, BitEqual(expected)) << backend;
    }
  }
}

// With the "eager" back end, a second derivative through a hook is that of eager mode. But if the hook uses a tensor
// that requires a gradient, the second derivative is an error.
TEST(TensorHooks, DifferentiatedAgain) {
  const auto function = [](const at::Tensor& x, const at::Tensor& c) {
    const at::Tensor y = x.sin();
    y.register_hook([c](const at::Tensor& g) { return g * g * c; });
    return y.exp().sum();
  };
  const auto twice = [](const at::Tensor& result, const at::Tensor& x) {
    const at::Tensor first = torch::autograd::grad({result}, {x}, {}, true, true)[0];
    return torch::autograd::grad({first.sum()}, {x})[0];
  };
  const at::Tensor x = at::randn({3}, at::kDouble).requires_grad_(), c = at::randn({3}, at::kDouble);
  auto compiled = compile(function, {.backend = "eager"});
  EXPECT_THAT(twice(compiled(x, c), x), BitEqual(twice(function(x, c), x)));
  const at::Tensor w = c.clone().requires_grad_();
  auto other = compile(function, {.backend = "eager"});
  EXPECT_THAT(error_of([&] { twice(other(x, w), x); }), HasSubstr("cannot be differentiated again"));
}

// In eager mode, a closure that holds the tensor of its own hook is never freed. The closure of a captured hook is
// freed with the autograd graph of its call.
TEST(TensorHooks, KeepNothingAlive) {
  auto compiled = compile(
      [](const at::Tensor& x, const at::Tensor& c) {
        const at::Tensor y = x.sin();
        y.register_hook([y, c](const at::Tensor& g) { return g * y * c; });
        return y.cos();
      },
      {.backend = "eager"});
  const auto freed = std::make_shared<bool>(false);
  {
    static float memory[3] = {1, 2, 3};
    const at::Tensor c = at::from_blob(memory, {3}, [freed](void*) { *freed = true; });
    compiled(at::ones({3}).requires_grad_(), c).sum().backward();
  }
  EXPECT_TRUE(*freed);
}

}  // namespace
}  // namespace rehearse::compiler::hook_closures
