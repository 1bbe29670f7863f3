// SPDX-License-Identifier: BSD-3-Clause
// User code throws in a call that captures. The effects of the code before the exception happen once, as in eager mode.
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

struct State {
  at::Tensor total = at::zeros({3});
  at::Tensor weight = at::ones({3}).requires_grad_();
  bool throws = true;
};

using Throwing = std::function<at::Tensor(const at::Tensor&)>;

Throwing straight(State& state) {
  return [&state](const at::Tensor& x) {
    x.mul_(2);
    {
      const at::NoGradGuard no_grad;
      state.weight.add_(x);
      state.total.add_(at::rand({3}));
      if (state.throws) throw std::invalid_argument("not now");
    }
    return x * state.weight + state.total;
  };
}

Throwing behind_a_read(State& state) {
  return [&state](const at::Tensor& x) {
    x.mul_(2);
    const bool large = x.sum().item<float>() > 10;
    state.total.add_(large ? x : x * at::rand({3}));
    if (state.throws) throw std::invalid_argument("not now");
    return x + state.total;
  };
}

Throwing behind_a_region(State& state) {
  return [&state](const at::Tensor& x) {
    const at::Tensor y = eager_region([](const at::Tensor& t) { return t + 1; }, x.mul_(3));
    state.total.add_(y);
    if (state.throws) throw std::invalid_argument("not now");
    return x + state.total;
  };
}

// An operator throws. The capture knows of the error before the operator runs.
Throwing by_an_operator(State& state) {
  return [&state](const at::Tensor& x) {
    state.total.add_(x);
    return state.throws ? x + at::ones({7}) : x + state.total;
  };
}

void expect_as_eager(const std::function<Throwing(State&)>& make, CompileOptions options) {
  State mine, theirs;
  auto compiled = compile(make(mine), std::move(options));
  const Throwing eager = make(theirs);
  std::uint64_t seed = 0;
  for (const bool throws : {true, false, true, false, false}) {
    for (const float value : {1.F, 9.F}) {
      mine.throws = theirs.throws = throws;
      const at::Tensor x = at::full({3}, value), x_eager = x.clone();
      const auto outcome = [&](const auto& call, const at::Tensor& input) {
        at::manual_seed(seed);
        try {
          return call(input).detach().clone();
        } catch (const std::exception&) {
          return at::Tensor();
        }
      };
      const at::Tensor found = outcome([&](const at::Tensor& input) { return compiled(input); }, x);
      const at::Tensor expected = outcome(eager, x_eager);
      ++seed;
      ASSERT_EQ(found.defined(), expected.defined());
      EXPECT_EQ(expected.defined(), !throws);
      if (expected.defined()) {
        EXPECT_THAT(found, BitEqual(expected));
      }
      EXPECT_THAT(x, BitEqual(x_eager));
      EXPECT_THAT(mine.total, BitEqual(theirs.total));
      EXPECT_THAT(mine.weight, BitEqual(theirs.weight));
    }
  }
}

TEST(Thrown, WhatWasDoneBeforeIsDone) {
  for (const auto& make : {straight, behind_a_read, behind_a_region, by_an_operator}) {
    expect_as_eager(make, {.verify = Verify::Always});
  }
  expect_as_eager(straight, {.fullgraph = true, .verify = Verify::Always});
}

// A call that throws leaves the generator as eager mode does: what is drawn in front of the error is drawn, and nothing
// behind it. In `run`, a `bad` call throws.
struct DrawingCode {
  const char* name;
  at::Tensor (*run)(const at::Tensor& x, const at::Tensor& index);
};

at::Tensor drop(const at::Tensor& x) { return at::dropout(x, 0.5, true); }
const at::Tensor& weight() {
  static const at::Tensor made = at::ones({4, 4}).requires_grad_();
  return made;
}
bool is_bad(const at::Tensor& index) { return index.numel() == 3; }

const DrawingCode kDrawing[] = {
    {"IndexOutOfRange",
     [](const at::Tensor& x, const at::Tensor& index) { return drop(drop(x).index_select(0, index)); }},
    {"WrongSizes",
     [](const at::Tensor& x, const at::Tensor& index) {
       const at::Tensor y = drop(x);
       return drop(is_bad(index) ? y.matmul(at::ones({7, 7})) : y);
     }},
    {"ByTheCode",
     [](const at::Tensor& x, const at::Tensor& index) {
       const at::Tensor y = drop(x);
       if (is_bad(index)) throw std::invalid_argument("not now");
       return drop(y);
     }},
    {"BehindARead",
     [](const at::Tensor& x, const at::Tensor& index) {
       const at::Tensor y = drop(x);
       if ((index.sum() > 8).item<bool>()) throw std::invalid_argument("not now");
       return drop(y.index_select(0, index));
     }},
    {"CaughtByTheCode",
     [](const at::Tensor& x, const at::Tensor& index) {
       const at::Tensor y = drop(x);
       try {
         if (is_bad(index)) y.matmul(at::ones({7, 7}));
       } catch (const c10::Error&) {
       }
       return drop(y);
     }},
    // Only eager autograd refuses this, so the error comes while aot_eager records the backward.
    {"WhereABackwardIsRecorded",
     [](const at::Tensor& x, const at::Tensor& index) {
       const at::Tensor y = drop(x);
       if (is_bad(index)) y.view({-1}).narrow(0, 0, 2).resize_({5});
       return drop(y * 2);
     }},
    // Eager autograd refuses to save it, for the backward of the product.
    {"InferenceTensor",
     [](const at::Tensor& x, const at::Tensor& index) {
       return drop(drop(drop(x).detach() * 2) + (is_bad(index) ? x : x + 1) * weight());
     }},
};

class ThrownDraws : public ::testing::TestWithParam<std::tuple<DrawingCode, const char*, Verify>> {};
INSTANTIATE_TEST_SUITE_P(, ThrownDraws,
                         ::testing::Combine(::testing::ValuesIn(kDrawing), ::testing::Values("eager", "aot_eager"),
                                            ::testing::Values(Verify::FirstHit, Verify::Always)),
                         [](const auto& info) {
                           const bool always = std::get<Verify>(info.param) == Verify::Always;
                           return std::string(std::get<DrawingCode>(info.param).name) + "_" +
                                  std::get<const char*>(info.param) + (always ? "_Always" : "");
                         });

TEST_P(ThrownDraws, AreThoseOfEagerMode) {
  const auto& [drawing, backend, verify] = GetParam();
  weight();  // not made in a capture
  auto compiled = compile(drawing.run, {.backend = backend, .verify = verify});
  const auto drawn_after = [&](auto&& function, bool bad) {
    at::Tensor x = at::ones({4, 4}).requires_grad_(!bad || std::string(drawing.name) != "InferenceTensor");
    if (!x.requires_grad()) {
      const c10::InferenceMode mode;
      x = at::ones({4, 4});
    }
    at::manual_seed(11);
    bool has_thrown = false;
    try {
      function(x, bad ? at::arange(7, 10) : at::arange(2));
    } catch (const std::exception&) {
      has_thrown = true;
    }
    return std::pair(has_thrown, at::rand({3}));
  };
  int thrown = 0;
  for (const bool bad : {true, false, false, true, true, false}) {
    const auto [mine, drawn] = drawn_after(compiled, bad);
    const auto [theirs, expected] = drawn_after(drawing.run, bad);
    EXPECT_EQ(mine, theirs) << bad;
    EXPECT_THAT(drawn, BitEqual(expected)) << bad;
    if (theirs) ++thrown;
  }
  EXPECT_EQ(thrown, std::string(drawing.name) == "CaughtByTheCode" ? 0 : 3);
}

}  // namespace
}  // namespace rehearse::compiler
