// SPDX-License-Identifier: BSD-3-Clause
// Contract: a captured function reads and sets the versions of tensors as in eager mode, and versions are not guarded.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/capture/versions.h>
#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>

#include "bit_equal.h"
#include "core/compile/like_eager/layers.h"

namespace rehearse_test {
namespace {

using rehearse::PreserveVersion;
using rehearse::set_version;
using rehearse::version;
using rehearse::test::BitEqual;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Versions, InEagerMode) {
  const at::Tensor x = at::ones({2}), view = x.view({2, 1});
  set_version(x, 0);
  x.add_(1);
  EXPECT_EQ(version(view), 1);
  set_version(view, 5);
  EXPECT_EQ(x._version(), 5);
  {
    const PreserveVersion keep(x);
    x.add_(1).mul_(2);
    EXPECT_EQ(version(x), 7);
  }
  EXPECT_EQ(version(x), 5);
  try {
    const PreserveVersion keep(std::vector<at::Tensor>{x, at::ones({2})});
    x.add_(1);
    throw std::runtime_error("from the code");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(version(x), 5);
  }
}

TEST(Versions, OfWhatHasNone) {
  EXPECT_THAT([] { version(at::Tensor()); },
              ThrowsMessage<c10::ValueError>(HasSubstr("version: the tensor is undefined")));
  EXPECT_THAT([] { set_version(at::Tensor(), 1); },
              ThrowsMessage<c10::ValueError>(HasSubstr("set_version: the tensor is undefined")));
  EXPECT_THAT([] { set_version(at::ones({2}), -1); },
              ThrowsMessage<c10::ValueError>(HasSubstr("set_version: version is -1; it must be 0 or more")));
  at::Tensor without;
  {
    const c10::InferenceMode inference;
    without = at::ones({2});
  }
  EXPECT_THAT([&] { version(without); },
              ThrowsMessage<c10::ValueError>(HasSubstr("version: the tensor was made in inference mode")));
}

// Changes two tensors, one of them also through a view, and asks for their versions between the changes.
std::tuple<at::Tensor, at::Tensor, std::vector<c10::SymInt>> count(const at::Tensor& w, const at::Tensor& x) {
  std::vector<c10::SymInt> seen = {version(w)};
  const at::Tensor result = w.sin() * x, own = x.detach().clone();
  own.add_(1).mul_(2);
  seen.push_back(version(own));
  {
    const at::NoGradGuard no_grad;
    const PreserveVersion keep(w);
    w.view(-1).mul_(x);
    w.add_(own);
    seen.push_back(version(w) - seen[0]);
  }
  seen.push_back(version(w));
  set_version(own, 9);
  seen.push_back(version(own.view(-1)));
  return {result, own, seen};
}

TEST(Versions, InOneGraphForAll) {
  for (const char* backend : {"eager", "aot_eager"}) {
    for (const bool grad_enabled : {false, true}) {
      SCOPED_TRACE(std::string(backend) + (grad_enabled ? " with gradients" : ""));
      const at::AutoGradMode mode(grad_enabled);
      auto compiled = rehearse::compile(count, {.backend = backend, .dynamic = true, .fullgraph = true});
      for (const std::int64_t start : {3, 0, 1, 4}) {
        const at::Tensor x = at::randn({start + 2});
        const at::Tensor w = at::randn({start + 2}).requires_grad_(), twin = w.detach().clone().requires_grad_();
        set_version(w, start);
        set_version(twin, start);
        const auto [found, own, seen] = compiled(w, x);
        const auto [expected, eager_own, eager_seen] = count(twin, x);
        EXPECT_THAT(found, BitEqual(expected));
        EXPECT_THAT(own, BitEqual(eager_own));
        EXPECT_THAT(w, BitEqual(twin));
        EXPECT_THAT(seen, ElementsAre(start, 2, 2, start, 9));
        EXPECT_EQ(seen, eager_seen);
        EXPECT_EQ(w._version(), start);
        EXPECT_EQ(own._version(), 9);
        if (!grad_enabled) continue;
        found.sum().backward();  // uses w's current values, without an error
        expected.sum().backward();
        EXPECT_THAT(w.grad(), BitEqual(twin.grad()));
      }
      EXPECT_EQ(compiled.stats().compiles, 1);
    }
  }
}

// If sizes are symbols, a back end may run the graph on fakes to determine the layouts of the graph's outputs. This run
// must accept nodes that read and set versions.
TEST(Versions, WhereSizesAreSymbols) {
  auto compiled = rehearse::compile(
      [](const at::Tensor& x) {
        {
          const at::NoGradGuard no_grad;
          const PreserveVersion keep(x);
          x.mul_(2);
        }
        return x.add_(1);
      },
      {.backend = "aot_eager", .dynamic = true, .fullgraph = true});
  for (const std::int64_t rows : {3, 6}) {
    const at::Tensor x = at::ones({rows, rows + 2, 4});
    set_version(x, rows);
    EXPECT_THAT(compiled(x), BitEqual(at::full({rows, rows + 2, 4}, 3.0)));
    EXPECT_EQ(x._version(), rows + 1);
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// A graph that asks for a version is not split, because a piece could not count the changes that other pieces make.
TEST(Versions, KeepAGraphInOnePiece) {
  Layers net([](LayersImpl& layers, const at::Tensor& x) {
    const at::Tensor h = layers.a->forward(x);
    layers.buffer.add_(1);
    layers.buffer.add_(1);
    const c10::SymInt before = version(layers.buffer);
    layers.buffer.add_(1);
    set_version(layers.buffer, before);
    return layers.c->forward(layers.b->forward(h)) + layers.buffer;
  });
  set_version(net->buffer, 0);
  rehearse::fakes::FakeDDP<Layers> ddp(net, 0.0001);
  auto compiled = rehearse::compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  compiled(at::ones({4, 6}));
  compiled(at::ones({4, 6}));
  EXPECT_EQ(net->buffer._version(), 4);
  EXPECT_EQ(compiled.stats().graphs, 1);
  const auto entry = compiled.explain().entries.at(0);
  EXPECT_THAT(entry.split_warnings, ElementsAre("the graph was not split: it asks for the version of a tensor"));
  EXPECT_THAT(entry.graphs.at(0).eager_because,
              AllOf(HasSubstr("it asks for the version of a tensor, at "), HasSubstr("versions_test.cpp:")));
}

const LayersProgram kVersionsInLayers[] = {
    {"a buffer whose changes are not counted",
     [](LayersImpl& net, const at::Tensor& x) {
       set_version(net.buffer, 7);
       const at::Tensor h = net.b->forward(net.a->forward(x)) * net.buffer;
       {
         const at::NoGradGuard no_grad;
         net.buffer.add_(x);
         set_version(net.buffer, 7);
       }
       return net.c->forward(h) * net.buffer.sum();
     }},
};
TEST(Versions, InAModuleInPieces) { expect_like_eager_in_pieces(kVersionsInLayers); }
TEST(Versions, InAModule) { expect_like_eager_in_one_piece(kVersionsInLayers); }

TEST(Versions, WithALeafThatIsMadeInside) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor p = x.detach().clone().requires_grad_();
    const at::Tensor y = p * p;
    const at::NoGradGuard no_grad;
    const PreserveVersion keep(p);
    p.add_(1);
    return std::tuple(p, y, version(p));
  };
  auto compiled = rehearse::compile(function, {.backend = "aot_eager", .fullgraph = true});
  for (int call = 0; call < 2; ++call) {
    const auto [p, y, seen] = compiled(at::ones({3}));
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(p._version(), 0);
    y.sum().backward();
    EXPECT_THAT(p.grad(), BitEqual(at::full({3}, 4.0)));
  }
  EXPECT_EQ(compiled.explain().entries.at(0).graphs.at(0).eager_because,
            "it makes a leaf, and asks for the version of a tensor, which pieces do not count");
}

TEST(Versions, BehindARead) {
  const auto function = [](const at::Tensor& x) {
    const bool positive = x.sum().item<float>() > 0;
    return std::tuple(positive ? x * 2 : x, version(x));
  };
  auto compiled = rehearse::compile(function);
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = at::ones({3});
    set_version(x, call);
    EXPECT_EQ(std::get<1>(compiled(x)), call);
  }
  EXPECT_THAT(compiled.explain().refusal,
              AllOf(HasSubstr("version() is called behind a read or an eager region of a captured function, at "),
                    HasSubstr("versions_test.cpp:")));
}

// bernoulli() fills its result in place, by its own kernel. The read makes the result one of a graph.
TEST(Versions, OfAResultThatAKernelFills_AreEagerModes) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor drawn = x.bernoulli();
    EXPECT_TRUE((x.sum() > 0).item<bool>());
    return at::full({}, drawn._version());
  };
  auto compiled = rehearse::compile(function);
  const at::Tensor x = at::full({3}, 0.5);
  for (int call = 0; call < 2; ++call) EXPECT_EQ(function(x).item<double>(), compiled(x).item<double>());
}

// The kernels of these operators call add_() and so on for each tensor of the list.
TEST(Versions, OfListsThatAreChanged_CountTheChange) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y) {
    const at::NoGradGuard no_grad;
    at::_foreach_add_({x, y.detach()}, 1);
    at::_foreach_copy_({x}, {y});
    const at::Tensor made = y * 1;
    at::_foreach_sqrt_({made});
    return made;
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = rehearse::compile(function, {.backend = backend, .fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor x = at::ones({3}), y = at::ones({3}), w = at::ones({3}).requires_grad_();
      const at::Tensor eagers_x = at::ones({3}), eagers_y = at::ones({3});
      const at::Tensor before = (x * w + y * w).sum();
      EXPECT_EQ(compiled(x, y)._version(), function(eagers_x, eagers_y)._version()) << backend;
      EXPECT_EQ(x._version(), eagers_x._version()) << backend;
      EXPECT_EQ(y._version(), eagers_y._version()) << backend;
      EXPECT_THROW(before.backward(), c10::Error) << backend;
    }
  }
}

// Autograd's kernels of these operators hide how their kernels change an argument that is not the result.
TEST(Versions, OfArgumentsThatAnOperatorChangesBesides_AreEagerModes) {
  const auto function = [](const at::Tensor& x, std::vector<at::Tensor> state) {
    const at::Tensor on = at::ones({1}, at::kLong);
    const at::Tensor quantized = std::get<0>(
        at::_fused_moving_avg_obs_fq_helper(x, on, on, state[0], state[1], state[2], state[3], 0.1, 0, 255, 0));
    const at::Tensor normal =
        std::get<0>(at::_native_batch_norm_legit(quantized, {}, {}, state[4], state[5], /*training=*/true, 0.1, 1e-5));
    return at::rrelu_with_noise(normal, state[6], 0.1, 0.3, /*training=*/false);
  };
  const auto called = [](auto& code, const at::Tensor& x) {
    std::vector<at::Tensor> state = {at::zeros({1}), at::ones({1}),  at::ones({1}),    at::zeros({1}, at::kInt),
                                     at::zeros({2}), at::zeros({2}), at::zeros({4, 2})};
    std::vector<std::uint32_t> versions;
    state.push_back(code(x, state));
    for (const at::Tensor& each : state) versions.push_back(each._version());
    return std::pair(state, versions);
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = rehearse::compile(function, {.backend = backend, .fullgraph = true});
    for (const bool needs_grad : {false, true}) {
      const at::Tensor x = at::arange(8.0F).view({4, 2}).requires_grad_(needs_grad);
      const auto [expected, eagers_versions] = called(function, x);
      const auto [found, versions] = called(compiled, x);
      EXPECT_THAT(found, BitEqual(expected)) << backend;
      EXPECT_EQ(versions, eagers_versions) << backend;
    }
  }
}

// The first factor is saved for the backward, and then a list operator changes it.
TEST(Versions, OfListsThatTheBackwardNeeds_EndTheBackward) {
  using Function = at::Tensor (*)(const at::Tensor& x, const at::Tensor& y);
  const Function wrong[] = {[](const at::Tensor& x, const at::Tensor& y) {
                              const at::Tensor product = x * y;
                              at::_foreach_add_({y}, 1);
                              return product + y;
                            },
                            [](const at::Tensor& x, const at::Tensor& y) {
                              const at::Tensor half = y / 2, product = x * half;
                              const at::NoGradGuard no_grad;
                              at::_foreach_neg_({half.narrow(0, 0, 2)});
                              return product;
                            },
                            [](const at::Tensor& x, const at::Tensor&) {
                              const at::Tensor sum = x.sum(), twice = x * 2;
                              at::_foreach_mul_({sum, twice}, sum);
                              return sum + twice;
                            }};
  for (const Function function : wrong) {
    for (const char* const backend : {"eager", "aot_eager"}) {
      auto compiled = rehearse::compile([function](const at::Tensor& x, const at::Tensor& y) { return function(x, y); },
                                        {.backend = backend, .fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = at::ones({3}).requires_grad_();
        EXPECT_THROW(function(x, at::ones({3})).sum().backward(), c10::Error);
        EXPECT_THROW(compiled(x, at::ones({3})).sum().backward(), c10::Error) << backend;
      }
    }
  }
  const auto right = [](const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor twice = x * 2, sum = x + y;
    at::_foreach_neg_({twice});
    at::_foreach_add_({twice, sum}, 1);
    return twice + sum;
  };
  auto compiled = rehearse::compile(right, {.fullgraph = true});
  const at::Tensor x = at::ones({3}).requires_grad_(), y = at::ones({3});
  const auto gradient = [&](auto& function) { return torch::autograd::grad({function(x, y).sum()}, {x}).front(); };
  EXPECT_THAT(gradient(compiled), BitEqual(gradient(right)));
}

}  // namespace
}  // namespace rehearse_test
