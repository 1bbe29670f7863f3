// SPDX-License-Identifier: BSD-3-Clause
// The Work of a captured call: waited for late, twice, in another order, or never. Also the uses that a capture
// refuses.
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/lone_group.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "kit/pre_mul_sum.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using rehearse::test::BitEqual;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Tensors = std::vector<at::Tensor>;

// Runs the code in eager mode and compiled, on 2 and 4 ranks, with three calls each. Expects the same bits and no
// remarks.
template <class Code>
void expect_same(const Code& code, std::int64_t compiles = 1, bool fullgraph = true, std::int64_t graphs = 1) {
  for (const char* backend : {"eager", "aot_eager"}) {
    for (const int ranks : {2, 4}) {
      const auto report = World({.ranks = ranks, .seed = 7}).run([&](RankContext& ctx) {
        auto compiled = compile(code, {.backend = backend, .fullgraph = fullgraph});
        for (int call = 0; call < 3; ++call) {
          const at::Tensor x = at::arange(6, at::kFloat) / 3 + ctx.rank() - call;
          const Tensors expected = code(x, ctx.group()), found = compiled(x, ctx.group());
          for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_THAT(found.at(i), BitEqual(expected[i])) << i;
        }
        EXPECT_EQ(compiled.stats().compiles, compiles);
        EXPECT_EQ(compiled.stats().graphs, graphs);
      });
      EXPECT_EQ(report.verdict, Verdict::ok) << backend << '\n' << sim::to_text(report);
      EXPECT_THAT(report.remarks, IsEmpty());
    }
  }
}

TEST(CapturedWorks, WaitedForInAnotherOrder) {
  expect_same([](const at::Tensor& x, const Group& group) {
    at::Tensor a = x * 2, b = x.exp();
    const Work first = group.allreduce(a), second = group.broadcast(b, 1);
    at::Tensor meanwhile = x.sin();
    second->wait();
    b = b + 1;
    first->wait();
    return Tensors{a * 2, b, meanwhile};
  });
}

TEST(CapturedWorks, WaitedForTwice) {
  expect_same([](const at::Tensor& x, const Group& group) {
    at::Tensor sum = x * 2;
    const Work work = group.allreduce(sum);
    EXPECT_TRUE(work->wait());
    EXPECT_TRUE(work->wait());
    return Tensors{sum};
  });
}

TEST(CapturedWorks, WaitedForWithATimeLimit) {
  expect_same([](const at::Tensor& x, const Group& group) {
    at::Tensor sum = x * 2;
    group.allreduce(sum)->wait(std::chrono::seconds(9));
    return Tensors{sum};
  });
}

TEST(CapturedWorks, ATimeLimitHolds) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    auto compiled = compile(
        [group](const at::Tensor& x) {
          at::Tensor sum = x * 2;
          group.allreduce(sum)->wait(std::chrono::milliseconds(1500));
          return sum;
        },
        {.fullgraph = true});
    if (ctx.rank() == 1) ctx.compute(std::chrono::seconds(3));
    compiled(at::ones({2}));
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(sim::to_text(report), HasSubstr("Timed out waiting 1500ms"));
  EXPECT_THAT(sim::to_text(report), HasSubstr("works_test.cpp:"));
}

TEST(CapturedWorks, SynchronousCalls) {
  expect_same([](const at::Tensor& x, const Group& group) {
    Tensors sum = {x * 2};
    c10d::AllreduceOptions options;
    options.asyncOp = false;
    options.reduceOp = c10d::ReduceOp::PRODUCT;
    group->allreduce(sum, options)->wait();
    return sum;
  });
}

// As in eager mode, a remark names the call.
TEST(CapturedWorks, NeverWaitedFor) {
  std::vector<std::string> remarks[2];
  for (const bool is_compiled : {false, true}) {
    const auto report = World({.ranks = 2}).run([&](RankContext& ctx) {
      const auto code = [](const at::Tensor& x, const Group& group) {
        at::Tensor sum = x * 2;
        group.allreduce(sum);
        return x + 1;
      };
      auto compiled = compile(code, {.fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        const at::Tensor x = at::ones({3});
        EXPECT_THAT(is_compiled ? compiled(x, ctx.group()) : code(x, ctx.group()), BitEqual(x + 1));
      }
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    remarks[is_compiled ? 1 : 0] = report.remarks;
  }
  EXPECT_EQ(remarks[0].size(), 1);
  EXPECT_EQ(remarks[1], remarks[0]);
}

// The call is in one graph and its wait in the next.
TEST(CapturedWorks, AcrossARead) {
  expect_same(
      [](const at::Tensor& x, const Group& group) {
        at::Tensor sum = x * 2;
        const Work work = group.allreduce(sum);
        const bool is_small = (x.sum() < 1e9).item<bool>();
        work->wait();
        return Tensors{is_small ? sum + 1 : sum};
      },
      1, false, 2);
}

TEST(CapturedWorks, AcrossAReadAtTheLimit) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const auto code = [](const at::Tensor& x, const Group& group) {
      at::Tensor sum = x * 2;
      const Work work = group.allreduce(sum);
      const auto value = x.sum().item<float>();
      work->wait();
      return sum + value;
    };
    auto compiled = compile(code, {.recompile_limit = 2});
    for (int call = 0; call < 5; ++call) {
      const at::Tensor x = at::ones({3}) * call + ctx.rank();
      EXPECT_THAT(compiled(x, ctx.group()), BitEqual(code(x, ctx.group())));
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

template <class Code>
void expect_refused(const Code& code, const std::string& reason) {
  const auto report = World({.ranks = 2}).run([&](RankContext& ctx) {
    auto compiled = compile(code, {.fullgraph = true});
    try {
      compiled(at::ones({3}), ctx.group());
      ADD_FAILURE() << "it was captured";
    } catch (const capture::NotCapturable& refused) {
      EXPECT_THAT(refused.what(), HasSubstr(reason));
      EXPECT_THAT(refused.what(), HasSubstr("works_test.cpp:"));
    }
    EXPECT_EQ(ctx.group()->getBackend(c10::DeviceType::CPU)->getSequenceNumberForGroup(), 0);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

TEST(CapturedWorks, LookingAtTheState_IsRefused) {
  expect_refused(
      [](const at::Tensor& x, const Group& group) {
        const Work work = group.allreduce(x * 2);
        return work->isCompleted() ? x : x + 1;
      },
      "Work::isCompleted()");
  expect_refused(
      [](const at::Tensor& x, const Group& group) {
        group.allreduce(x * 2)->getFuture();
        return x + 1;
      },
      "Work::getFuture()");
}

TEST(CapturedWorks, AWorkThatIsKept_IsRefused) {
  expect_refused(
      [kept = std::make_shared<Work>()](const at::Tensor& x, const Group& group) {
        at::Tensor sum = x * 2;
        *kept = group.allreduce(sum);
        return sum;
      },
      "outlives");
}

TEST(CapturedWorks, AFactor_IsRefused) {
  expect_refused(
      [](const at::Tensor& x, const Group& group) {
        group.allreduce(x * 2, rehearse::test::pre_mul_sum(2.0))->wait();
        return x + 1;
      },
      "which no graph can hold");
}

TEST(CapturedWorks, CoalescedCalls_AreRefused) {
  expect_refused(
      [](const at::Tensor& x, const Group& group) {
        at::Tensor sum = x * 2;
        group->startCoalescing(c10::DeviceType::CPU);
        group.allreduce(sum);
        group->endCoalescing(c10::DeviceType::CPU)->wait();
        return sum;
      },
      "startCoalescing");
}

TEST(CapturedWorks, CallsPastTheProcessGroup_AreRefused) {
  expect_refused(
      [](const at::Tensor& x, const Group& group) {
        Tensors sum = {x * 2};
        group->getBackend(c10::DeviceType::CPU)->allreduce(sum)->wait();
        return sum.front();
      },
      "c10d::Backend");
}

// A graph could not find this group at run time, because no one has registered its name.
TEST(CapturedWorks, AGroupThatIsNotRegistered_IsRefused) {
  const Group group = fakes::lone_group(0, 2, "nowhere");
  const auto code = [](const at::Tensor& x, const Group& group) {
    at::Tensor sum = x * 2;
    group.allreduce(sum)->wait();
    return sum;
  };
  auto compiled = compile(code, {.fullgraph = true});
  try {
    compiled(at::ones({3}), group);
    ADD_FAILURE() << "it was captured";
  } catch (const capture::NotCapturable& refused) {
    EXPECT_THAT(refused.what(), HasSubstr("works_test.cpp:"));
    EXPECT_THAT(refused.what(), HasSubstr("resolve_process_group()"));
  }
}

}  // namespace
