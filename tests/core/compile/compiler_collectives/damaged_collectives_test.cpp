// SPDX-License-Identifier: BSD-3-Clause
// Contract: a rank checks all numbers that another rank sends at compile time. If a fault makes a rank skip a call, or
// damages bytes on the way, two runs with this fault end in the same way. If the bytes cannot be right, a CompileError
// names a rank: the one that sent them, the one that skipped the call or, for a reduction, the one that got the bytes.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/object_collectives.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "compile/compiler_collectives/compiler_collectives.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace damaged_collectives {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using testing::HasSubstr;
using testing::StartsWith;

using Kind = InputFact::Kind;

const CollectiveLabel kLabel{"f", "train.cpp:7"};

InputFacts some_facts() {
  return {{.source = "x", .kind = Kind::Tensor, .dtype = c10::kFloat, .sizes = {4, 1, 1LL << 40}},
          {.source = "n", .kind = Kind::SymInt, .int_value = -3},
          {.source = "mode", .kind = Kind::String, .text = "mean"}};
}

// Runs `body` twice in a world of 3 ranks, with one fault in the communicator of the compiler collectives. Both reports
// must agree.
Report run(const std::string& fault, const World::Body& body) {
  std::optional<Report> first;
  for (int run = 0; run < 2; ++run) {
    WorldOptions options;
    options.ranks = 3;
    options.faults.push_back(parse_fault(fault));
    options.faults.back().group = std::string(CompilerCollectives::kPrefix) + "world";
    const Report report = World(options).run(body);
    EXPECT_EQ(report.faults.at(0).times, 1u) << fault << ": " << report.faults.at(0).why_not;
    if (first) {
      EXPECT_EQ(report.identity, first->identity) << fault;
      EXPECT_EQ(sim::to_text(report), sim::to_text(*first)) << fault;
    }
    first = report;
  }
  return *first;
}

void make_all_collectives(RankContext& ctx) {
  CompilerCollectives collectives(ctx.group());
  const auto all = collectives.exchange(some_facts(), kLabel);
  ASSERT_EQ(all.size(), 3u);
  const auto hashes = collectives.commit(GraphHash{7}, kLabel);
  ASSERT_EQ(hashes.size(), 3u);
  collectives.least(Ability::serve, kLabel);
}

// The error that a compiler collective throws on this rank; empty if none does.
std::string error_of(RankContext& ctx) {
  try {
    make_all_collectives(ctx);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST(DamagedCollectives, SkippedGather_IsAnErrorOfItsRank) {
  for (const int rank : {0, 1, 2}) {
    for (const int call : {1, 2, 3, 4}) {  // the inputs' lengths and bytes, then the outcome's
      std::vector<std::string> errors;
      run("skip_collective rank=" + std::to_string(rank) + " at=allgather#" + std::to_string(call),
          [&](RankContext& ctx) {
            const std::string error = error_of(ctx);
            if (error.empty()) return;
            EXPECT_EQ(ctx.rank(), rank);
            errors.push_back(error);
            throw std::runtime_error(error);
          });
      const std::string step = call <= 2 ? "inputs of f" : "outcome of f";
      EXPECT_THAT(errors, testing::Each(StartsWith("rank " + std::to_string(rank) +
                                                   " did not get its own bytes back from the gather of the " + step)));
      EXPECT_FALSE(errors.empty()) << "rank " << rank << ", call " << call;
    }
  }
}

TEST(DamagedCollectives, SkippedComparison_EndsTheSameInEveryRun) {
  for (const int rank : {0, 1, 2})
    run("skip_collective rank=" + std::to_string(rank) + " at=allreduce#5", make_all_collectives);
}

TEST(DamagedCollectives, DamagedComparison_IsAnError) {
  std::vector<std::string> errors;
  const auto report = run("corrupt rank=1 at=allreduce#5 with=bit", [&](RankContext& ctx) {
    const std::string error = error_of(ctx);
    if (!error.empty()) errors.push_back(error);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_THAT(errors, testing::Each(StartsWith("rank 1 got ")));
}

// The gather's output begins with rank 0's bytes, and the fault damages one of them. The bytes may still decode to
// valid facts, which then pass unnoticed. Otherwise the error names rank 0.
TEST(DamagedCollectives, AnyDamagedByte_IsReadOrNamesItsSender) {
  int found = 0;
  for (const int call : {1, 2, 3, 4}) {
    const int most = call % 2 == 1 ? 1 : call == 2 ? 120 : 16;
    for (int element = 0; element < most; ++element) {
      run("corrupt rank=1 at=allgather#" + std::to_string(call) + " with=bit element=" + std::to_string(element),
          [&](RankContext& ctx) {
            const std::string error = error_of(ctx);
            if (error.empty()) return;
            EXPECT_EQ(ctx.rank(), 1);
            EXPECT_THAT(error, HasSubstr("rank 0 "));
            ++found;
            throw std::runtime_error(error);
          });
    }
  }
  EXPECT_GT(found, 2 * 50);
}

TEST(DamagedCollectives, CompiledFunction_FailsOnTheRankThatSkipped) {
  for (const int call : {1, 2, 3, 4}) {
    const auto report = run("skip_collective rank=1 at=allgather#" + std::to_string(call), [](RankContext& ctx) {
      auto f = compile([](const at::Tensor& x) { return x * 2; }, {.group = ctx.group(), .name = "f"});
      f(at::ones({4}));
    });
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_THAT(report.headline, HasSubstr("rank 1 did not get its own bytes back")) << sim::to_text(report);
  }
}

TEST(DamagedCollectives, DamagedFacts_DecodeToValidNumbersOrAnError) {
  const auto bytes = encode(some_facts());
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    for (const int value : {0x00, 0x01, 0x40, 0x80, 0xFF}) {
      auto damaged = bytes;
      damaged[place] = static_cast<char>(value);
      try {
        for (const InputFact& fact : decode_facts(damaged, "rank 5")) {
          EXPECT_LE(fact.kind, Kind::Absent);
          EXPECT_LT(fact.dtype, c10::ScalarType::NumOptions);
          EXPECT_THAT(fact.sizes, testing::Each(testing::Ge(0)));
        }
      } catch (const CompileError& error) {
        EXPECT_THAT(error.what(), StartsWith("what rank 5 sent about a compilation is damaged: "));
      }
    }
  }
}

TEST(DamagedObjects, SkippedCall_IsAnErrorOfItsRank) {
  for (const bool is_gather : {false, true}) {
    WorldOptions options;
    options.ranks = 3;
    options.faults.push_back(parse_fault("skip_collective rank=1 at=allgather#1"));
    const auto report = World(options).run([&](RankContext& ctx) {
      const std::string payload(static_cast<std::size_t>(ctx.rank() + 1), 'x');
      if (is_gather) {
        comm::gather_object(ctx.group(), payload, 0);
      } else {
        comm::all_gather_object(ctx.group(), payload);
      }
    });
    EXPECT_EQ(report.verdict, Verdict::rank_failed);
    EXPECT_THAT(report.headline, HasSubstr("rank 1 of the group announced 2 bytes and got 0 back"));
  }
}

TEST(DamagedObjects, ImpossibleLength_NamesItsRank) {
  WorldOptions options;
  options.ranks = 3;
  options.faults.push_back(parse_fault("corrupt rank=1 at=broadcast#1 with=bit"));
  const auto report =
      World(options).run([](RankContext& ctx) { EXPECT_EQ(comm::broadcast_object(ctx.group(), "abc", 0), "abc"); });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.headline, HasSubstr("broadcast_object: rank 0 of the group announced a payload of"));
}

}  // namespace
}  // namespace damaged_collectives
