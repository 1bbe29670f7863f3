// SPDX-License-Identifier: BSD-3-Clause
// Contract: for a group without a back end for CPU tensors, compiler collectives use the group's store, with the same
// results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/fakes/lone_backend.h>

#include "compile/compiler_collectives/compiler_collectives.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace store_gather_test {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A group whose only back end is for CUDA tensors, like a group that has only NCCL.
Group of_gpus(RankContext& ctx, const c10::intrusive_ptr<c10d::Store>& store) {
  using BackendType = c10d::ProcessGroup::BackendType;
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, ctx.rank(), ctx.size());
  group->setBackend(c10::kCUDA, BackendType::NCCL, c10::make_intrusive<fakes::LoneBackend>(ctx.rank(), ctx.size()));
  group->setDefaultBackend(BackendType::NCCL);
  group->setGroupName("gpus");
  return Group(group);
}

// A back end that is not Rehearse's. Like gloo's, it publishes its address in the store that it gets, under its rank.
class ForeignBackend : public c10d::Backend {
 public:
  ForeignBackend(RankContext& ctx, const c10::intrusive_ptr<c10d::Store>& store)
      : Backend(ctx.rank(), ctx.size()), communicator_(ctx.group()->getBackend(c10::kCPU)) {
    publish(*store);
  }
  const std::string getBackendName() const override { return "foreign"; }
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return c10::make_intrusive<Options>("foreign"); }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>&,
                                          const c10::intrusive_ptr<Options>&) override {
    publish(*store);
    return communicator_;
  }

 private:
  void publish(c10d::Store& store) const {
    EXPECT_EQ(store.add("address of " + std::to_string(getRank()), 1), 1) << "others read an older address";
  }

  c10::intrusive_ptr<c10d::Backend> communicator_;
};

InputFacts fact_of(int number) {
  if (number % 3 == 0) return {};
  return {{.source = "n", .kind = InputFact::Kind::Int, .int_value = number}};
}

void on_sizes(const World::Body& body) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::uint64_t seed : {1, 2}) {
      const auto report = World({.ranks = ranks, .seed = seed}).run(body);
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    }
  }
}

TEST(StoreGather, AllSteps_GiveEachRankAllContributions) {
  on_sizes([](RankContext& ctx) {
    const auto group = of_gpus(ctx, ctx.store());
    CompilerCollectives first(group), second(group);  // both count rounds in the same key of the store
    for (int round = 0; round < 4; ++round) {
      auto& collectives = (ctx.rank() + round) % 2 == 0 ? first : second;
      const auto all = collectives.exchange(fact_of(ctx.rank() + round), {"f", ""});
      ASSERT_EQ(all.size(), static_cast<std::size_t>(ctx.size()));
      for (int rank = 0; rank < ctx.size(); ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], fact_of(rank + round));
      }
      for (const auto each : {Ability::run_eagerly, Ability::compile, Ability::serve}) {
        EXPECT_EQ(collectives.least(ctx.rank() == ctx.size() - 1 ? each : Ability::serve, {"f", ""}), each);
      }
      const auto hashes = collectives.commit(GraphHash{static_cast<std::uint64_t>(ctx.rank())}, {"f", ""});
      EXPECT_EQ(hashes.back(), GraphHash{static_cast<std::uint64_t>(ctx.size() - 1)});
    }
    if (ctx.size() == 1) return;
    const auto mine = ctx.rank() == 1 ? CompileOutcome(ErrorText{"no graph"}) : CompileOutcome(GraphHash{1});
    EXPECT_THAT([&] { first.commit(mine, {"f", ""}); },
                ThrowsMessage<CompileError>("rank 1 could not compile f: no graph"));
  });
}

// Each function that is compiled has its own CompilerCollectives.
TEST(ForeignBackends, EachCommunicator_HasItsOwnKeysInTheStore) {
  on_sizes([](RankContext& ctx) {
    using BackendType = c10d::ProcessGroup::BackendType;
    const auto group = c10::make_intrusive<c10d::ProcessGroup>(ctx.store(), ctx.rank(), ctx.size());
    group->setBackend(c10::kCPU, BackendType::CUSTOM, c10::make_intrusive<ForeignBackend>(ctx, ctx.store()));
    group->setDefaultBackend(BackendType::CUSTOM);
    group->setGroupName("foreign");
    for (int function = 0; function < 3; ++function) {
      CompilerCollectives collectives{Group(group)};
      EXPECT_EQ(collectives.least(Ability::serve, {"f", ""}), Ability::serve);
      const auto own = ctx.rank() == 0 ? Ability::compile : Ability::serve;
      EXPECT_EQ(collectives.least(own, {"f", ""}), Ability::compile);
    }
  });
}

// In the end, the store has one message and one counter of each rank. A rank that is alone uses no store.
TEST(StoreGather, KeysOfEarlierRounds_AreDeleted) {
  on_sizes([](RankContext& ctx) {
    CompilerCollectives collectives(of_gpus(ctx, ctx.store()));
    const auto before = ctx.store()->getNumKeys();
    ctx.group().barrier()->wait();
    for (int round = 0; round < 5; ++round) collectives.least(Ability::serve, {"f", ""});
    ctx.group().barrier()->wait();
    EXPECT_EQ(ctx.store()->getNumKeys() - before, ctx.size() == 1 ? 0 : 2 * ctx.size());
  });
}

TEST(StoreGather, DifferentFunctions_AreAnErrorThatNamesThem) {
  on_sizes([](RankContext& ctx) {
    if (ctx.size() == 1) return;
    CompilerCollectives collectives(of_gpus(ctx, ctx.store()));
    const bool is_odd = ctx.rank() == 1;
    EXPECT_THAT([&] { collectives.exchange({}, {is_odd ? "g" : "f", ""}); },
                ThrowsMessage<CompileError>(testing::AllOf(HasSubstr("are at different steps of a compilation"),
                                                           HasSubstr("inputs of f"), HasSubstr("inputs of g"))));
  });
}

TEST(StoreGather, WithoutAStore_IsRefused) {
  World({.ranks = 2}).run([](RankContext& ctx) {
    CompilerCollectives collectives(of_gpus(ctx, nullptr));
    EXPECT_THAT([&] { collectives.least(Ability::serve, {"f", ""}); },
                ThrowsMessage<CompileError>(HasSubstr("nor a store")));
  });
}

TEST(StoreGather, CompiledFunctions_Agree) {
  on_sizes([](RankContext& ctx) {
    for (const bool guards : {false, true}) {
      auto sum = compile([](const at::Tensor& x) { return x.sum(); },
                         {.fullgraph = true, .group = of_gpus(ctx, ctx.store()), .guard_collectives = guards});
      for (const int batch : ctx.rank() == 0 ? std::vector{5, 8, 6} : std::vector{6, 6, 3}) sum(at::ones({batch}));
      EXPECT_EQ(sum.stats().compiles, ctx.size() == 1 ? 2 : 1);  // a lone rank learns its second size later
    }
  });
}

TEST(StoreGather, RankThatHitItsCache_IsNamed) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    auto f = compile([](const at::Tensor& x, std::int64_t k) { return x * k; },
                     {.fullgraph = true, .group = of_gpus(ctx, ctx.store()), .name = "f"});
    f(at::ones({2}), 3);
    f(at::ones({2}), ctx.rank() == 1 ? 4 : 3);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock) << sim::to_text(report);
  EXPECT_THAT(report.headline,
              testing::StartsWith("rank 1 compiles f (call 2: arg1 is 4, guard arg1 == 3 of entry 0) at "));
  EXPECT_THAT(report.headline, HasSubstr(", rank 0 used compiled entry 0 in call 2 and is in barrier #1"));
}

}  // namespace
}  // namespace store_gather_test
