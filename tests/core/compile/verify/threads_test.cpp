// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a function starts a thread and uses its tensors there, compile() refuses the function, in the thread of
// the call. The process goes on, and without fullgraph the function runs in eager mode.
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"

// These tests have a namespace of their own, because a unity build compiles several sources of this program as one.
namespace rehearse::compiler::threads {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;
using ThreadedFunction = at::Tensor (*)(const at::Tensor& x);

at::Tensor in_thread(const std::function<at::Tensor()>& code) {
  at::Tensor result;
  std::thread([&] { result = code(); }).join();
  return result;
}

std::int64_t offset_in_thread(const at::Tensor& x) {
  std::int64_t offset = 0;
  std::thread([&] { offset = x.storage_offset(); }).join();
  return offset;
}

const std::vector<std::pair<const char*, ThreadedFunction>> kThreaded = {
    {"a product", [](const at::Tensor& x) { return in_thread([&] { return x * 2; }) + 1; }},
    {"the result itself", [](const at::Tensor& x) { return in_thread([&] { return x.exp(); }); }},
    {"a composite", [](const at::Tensor& x) { return in_thread([&] { return at::linear(x, x).reshape({-1}); }); }},
    {"a matrix product", [](const at::Tensor& x) { return in_thread([&] { return x.matmul(x.t()); }).sum(); }},
    {"a write", [](const at::Tensor& x) { return in_thread([&, y = x.clone()] { return y.add_(1); }) * 2; }},
    {"a list", [](const at::Tensor& x) { return in_thread([&] { return at::stack(x.split(1)); }); }},
    {"a read", [](const at::Tensor& x) { return in_thread([&] { return x * (x.sum().item<float>() + 1); }); }},
    {"a comparison", [](const at::Tensor& x) { return in_thread([&] { return at::equal(x, x * 1) ? x + 1 : x; }); }},
    {"a size",
     [](const at::Tensor& x) { return in_thread([&] { return at::ones({x.size(0)}) * x.size(1) * x[0][0]; }); }},
    {"a size that data decides", [](const at::Tensor& x) { return in_thread([&] { return x.nonzero() + 1; }); }},
    {"a storage offset", [](const at::Tensor& x) { return x + offset_in_thread(x); }},
    {"nothing that is used", [](const at::Tensor& x) { return in_thread([&] { return x.sum(); }), x + 1; }},
    {"std::async",
     [](const at::Tensor& x) { return std::async(std::launch::async, [&] { return x.sin(); }).get() + x; }},
};

// The code meets another refusal, or the end of a graph, before it uses what the thread has made.
const std::vector<std::pair<const char*, ThreadedFunction>> kThreadedAndRefused = {
    {"an eager region",
     [](const at::Tensor& x) {
       const at::Tensor made = in_thread([&] { return x * 2; });
       eager_region([](at::Tensor y) { y.mul_(3); }, made);
       return made + x;
     }},
    {"a version",
     [](const at::Tensor& x) {
       const at::Tensor made = in_thread([&] { return x * 2; });
       return x._version() == 0 ? x * 3 : made;
     }},
    {"memory, and a catch",
     [](const at::Tensor& x) {
       const at::Tensor made = in_thread([&] { return x * 2; });
       try {
         return x.detach().data_ptr<float>() != nullptr ? made * 3 : made;
       } catch (const std::exception&) {
         return made * 5;
       }
     }},
    {"a read before it, and a version",
     [](const at::Tensor& x) {
       const bool is_positive = (x.sum() > 0).item<bool>();
       const at::Tensor y = x * 2;
       const at::Tensor made = in_thread([&] { return y + 1; });
       return x._version() == 0 && is_positive ? made * 3 : made;
     }},
    {"a region that gets nothing of it",
     [](const at::Tensor& x) {
       const at::Tensor made = in_thread([&] { return x * 2; });
       return eager_region([](const at::Tensor& y) { return y + 1; }, x) + made;
     }},
};

at::Tensor square(std::int64_t rows) { return at::arange(rows * rows, at::kFloat).view({rows, rows}) / 8 + 1; }

TEST(Threads, ThatUseACapturedTensor_AreRefusedInTheFunction) {
  for (const auto& [what, function] : kThreaded) {
    for (const bool requires_grad : {false, true}) {
      auto compiled = compile(function);
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = square(3).requires_grad_(requires_grad);
        EXPECT_THAT(compiled(x), BitEqual(function(x))) << what;
      }
      EXPECT_THAT(compiled.explain().refusal, HasSubstr("is called in another thread with a tensor that is being"))
          << what;
      EXPECT_EQ(compiled.stats().eager_calls, 2) << what;
    }
  }
}

TEST(Threads, BeforeAnotherRefusal_AreRefusedFirst) {
  for (const auto& [what, function] : kThreadedAndRefused) {
    auto compiled = compile(function);
    for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(square(3)), BitEqual(function(square(3)))) << what;
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("another thread")) << what;
  }
}

// The rest of a refused call keeps the fakes of its inputs.
TEST(Threads, InTheRestOfACall_GetTheRealInputs) {
  const std::vector<std::pair<const char*, ThreadedFunction>> functions = {
      {"a product", [](const at::Tensor& x) { return in_thread([&] { return x * 2; }); }},
      {"a matrix product", [](const at::Tensor& x) { return in_thread([&] { return x.matmul(x.t()); }); }},
      {"a list", [](const at::Tensor& x) { return in_thread([&] { return at::stack({x, x + 1}); }); }},
      {"a read", [](const at::Tensor& x) { return in_thread([&] { return x * x.sum().item<float>(); }); }},
  };
  for (const auto& [what, function] : functions) {
    for (const bool requires_grad : {false, true}) {
      const auto rest = [function](const at::Tensor& x) {
        const at::Tensor y = (x.sum() > 0).item<bool>() ? x * 2 : x;
        return x._version() == 0 ? function(x) + y.sum() : y;
      };
      auto compiled = compile(rest);
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = square(3).requires_grad_(requires_grad), other = square(3).requires_grad_(requires_grad);
        const at::Tensor y = compiled(x), expected = rest(other);
        EXPECT_THAT(y, BitEqual(expected)) << what;
        if (!requires_grad) continue;
        y.sum().backward();
        expected.sum().backward();
        EXPECT_THAT(x.grad(), BitEqual(other.grad())) << what;
      }
    }
  }
}

TEST(Threads, WithFullgraph_AreAnErrorThatNamesTheOperator) {
  for (const auto& [what, function] : kThreaded) {
    auto compiled = compile(function, {.fullgraph = true});
    EXPECT_THAT([&] { compiled(square(3)); },
                testing::ThrowsMessage<capture::NotCapturable>(HasSubstr("another thread")))
        << what;
  }
}

TEST(Threads, WithSizesThatVary_AreRefusedToo) {
  for (const auto& [what, function] : kThreaded) {
    auto compiled = compile(function, {.dynamic = true});
    EXPECT_THAT(compiled(square(3)), BitEqual(function(square(3)))) << what;
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("another thread")) << what;
  }
}

TEST(Threads, ThatUseNoCapturedTensor_AreNoReason) {
  int runs = 0;
  auto compiled = compile(
      [&runs](const at::Tensor& x) {
        std::thread([&runs] { ++runs; }).join();
        return x + 1;
      },
      {.fullgraph = true});
  EXPECT_THAT(compiled(square(2)), BitEqual(square(2) + 1));
  EXPECT_GT(runs, 0);
}

TEST(Threads, OfARankInAWorld_AreRefused) {
  const auto report = World({.ranks = 2}).run([](RankContext&) {
    const ThreadedFunction function = kThreaded.front().second;
    auto compiled = compile(function);
    EXPECT_THAT(compiled(square(3)), BitEqual(function(square(3))));
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("another thread"));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

}  // namespace
}  // namespace rehearse::compiler::threads
