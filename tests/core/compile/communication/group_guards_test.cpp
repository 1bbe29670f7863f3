// SPDX-License-Identifier: BSD-3-Clause
// Contract: a graph is valid only for the groups of its capture. A group that a function finds outside its arguments is
// guarded, or refused with the line and a remedy. A graph never silently sends to ranks of another group.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/watch.h>
#include <rehearse/fakes/lone_group.h>
#include <rehearse/parallel/device_mesh.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/world_groups.h>

#include "bit_equal.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr const char* kCure =
    "Make the group an argument, or write rehearse::watch(group); for the group of all ranks write "
    "rehearse::world_group().";

void on_two_ranks(const World::Body& body) {
  const Report report = World({.ranks = 2}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// Two groups of the same ranks in opposite orders: rank 0 of one is rank 1 of the other.
struct TwoGroups {
  explicit TwoGroups(RankContext& ctx)
      : straight(ctx.new_group({0, 1}, "straight")), crossed(ctx.new_group({1, 0}, "crossed")) {}
  const Group straight, crossed;
};

template <class Compiled>
std::string refusal_of(Compiled& compiled) {
  try {
    compiled(at::ones({2}));
  } catch (const capture::NotCapturable& refused) {
    return refused.what();
  }
  return "none";
}

TEST(GroupGuards, AnArgument_IsGuardedByIdentityAndKeptForTheNextTime) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    auto place = compile([](const at::Tensor& x, const Group& group) { return x + group.rank(); }, {.fullgraph = true});
    const at::Tensor x = at::zeros({2});
    for (const Group* const group : {&groups.straight, &groups.crossed, &groups.straight, &groups.crossed}) {
      EXPECT_THAT(place(x, *group), BitEqual(x + group->rank()));
    }
    EXPECT_EQ(place.stats().compiles, 2);
  });
}

TEST(GroupGuards, AWatchedGroup_CompilesAnewAndComesBackForNothing) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    Group group = groups.straight;
    auto place = compile([&](const at::Tensor& x) { return x + watch(group).rank(); }, {.fullgraph = true});
    const at::Tensor x = at::zeros({2});
    for (const Group* const now : {&groups.straight, &groups.crossed, &groups.straight}) {
      group = *now;
      EXPECT_THAT(place(x), BitEqual(x + now->rank()));
    }
    EXPECT_EQ(place.stats().compiles, 2);
  });
}

TEST(GroupGuards, ARankThatIsNoMember_IsAConstantToo) {
  on_two_ranks([](RankContext& ctx) {
    Group group = ctx.new_group({1}, "one");
    auto sign = compile([&](const at::Tensor& x) { return watch(group) ? x : -x; }, {.fullgraph = true});
    const at::Tensor x = at::ones({2});
    EXPECT_THAT(sign(x), BitEqual(ctx.rank() == 1 ? x : -x));
    group = ctx.group();
    EXPECT_THAT(sign(x), BitEqual(x));
    EXPECT_EQ(sign.stats().compiles, 2);
  });
}

TEST(GroupGuards, KeptByValueInTheFunction_NeedsNoWatch) {
  on_two_ranks([](RankContext& ctx) {
    const Group crossed = TwoGroups(ctx).crossed;
    auto sum = compile(
        [crossed](const at::Tensor& x) {
          at::Tensor sum = x * (1 + crossed.rank());
          crossed.allreduce(sum)->wait();
          return sum;
        },
        {.fullgraph = true});
    for (int call = 0; call < 2; ++call) EXPECT_THAT(sum(at::ones({2})), BitEqual(at::full({2}, 3.0)));
    EXPECT_EQ(sum.stats().compiles, 1);
  });
}

TEST(GroupGuards, AFunctionThatCanChangeItsOwnGroup_IsRefused) {
  on_two_ranks([](RankContext& ctx) {
    auto place = compile([group = TwoGroups(ctx).crossed](const at::Tensor& x) mutable { return x + group.rank(); },
                         {.fullgraph = true});
    EXPECT_THAT(refusal_of(place), HasSubstr("a method of the group \"crossed\", which is neither"));
  });
}

std::int64_t rank_in(const Group& group) { return group.rank(); }
std::int64_t rank_in(const c10::intrusive_ptr<c10d::ProcessGroup>& group) { return group->getRank(); }
std::int64_t rank_in(c10d::ProcessGroup* const& group) { return group->getRank(); }
std::int64_t rank_in(const DeviceMesh& mesh) { return mesh.group("dp").rank(); }

// Its call operator is const, and another group may stand in it in the next call.
template <class Held>
struct Keeper {
  mutable Held held;
  mutable Held next;
  mutable int calls = 0;
  at::Tensor operator()(const at::Tensor& x, bool replaces) const {
    ++calls;
    if (replaces) return held = next, x * 2;
    return x + rank_in(held);
  }
};

template <class Held>
void expect_guard_of_kept(const Held& held, const Held& next) {
  auto place = compile(Keeper<Held>{held, next}, {.fullgraph = true});
  const at::Tensor x = at::zeros({2});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(place(x, false), BitEqual(x + rank_in(held)));
  auto moved = place;
  EXPECT_THAT(moved(x, false), BitEqual(x + rank_in(held)));
  EXPECT_EQ(place.stats().compiles, 1);
  place(x, true);
  for (int call = 0; call < 2; ++call) EXPECT_THAT(place(x, false), BitEqual(x + rank_in(next)));
  EXPECT_THAT(moved(x, false), BitEqual(x + rank_in(held)));
  EXPECT_EQ(place.stats().compiles, 3);
  EXPECT_EQ(place.explain().recompiles.back().failures.back().source, "a group in the function object");
}

TEST(GroupGuards, AMutableMember_IsGuardedWhateverHoldsTheGroup) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    const auto &straight = groups.straight.get(), &crossed = groups.crossed.get();
    expect_guard_of_kept(groups.straight, groups.crossed);
    expect_guard_of_kept(straight, crossed);
    expect_guard_of_kept(straight.get(), crossed.get());
    expect_guard_of_kept(DeviceMesh(ctx, {2, 1}, {"dp", "tp"}), DeviceMesh(ctx, {1, 2}, {"dp", "tp"}));
  });
}

// Changes its own group in each call, before or after it uses the group.
struct Turning {
  mutable Group group;
  mutable Group next;
  bool turns_first;
  at::Tensor operator()(const at::Tensor& x) const {
    if (turns_first) std::swap(group, next);
    at::Tensor y = x + group.rank();
    if (!turns_first) std::swap(group, next);
    return y;
  }
};

TEST(GroupGuards, AFunctionThatReplacesItsOwnGroup_IsRefused) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    for (const bool turns_first : {false, true}) {
      for (const auto verify : {Verify::Never, Verify::FirstHit, Verify::Always}) {
        const Turning code{groups.straight, groups.crossed, turns_first};
        auto turning = compile(code, {.verify = verify});
        for (int call = 0; call < 5; ++call) EXPECT_THAT(turning(at::ones({2})), BitEqual(code(at::ones({2}))));
        EXPECT_THAT(turning.explain().refusal, HasSubstr("the function replaces a group in its own object"));
      }
    }
  });
}

using Use = std::function<at::Tensor(const at::Tensor&, const Group&)>;

// Several ways to use a group that a lambda captures by reference. In a later call, the captured variable could have
// another group.
TEST(GroupGuards, FoundByReference_IsRefusedWithTheLineAndARemedy) {
  const std::vector<Use> uses{
      [](const at::Tensor& x, const Group& group) { return x + group.rank(); },
      [](const at::Tensor& x, const Group& group) { return x + group.size(); },
      [](const at::Tensor& x, const Group& group) { return group ? x : -x; },
      [](const at::Tensor& x, const Group& group) { return x + group->getRank(); },
      [](const at::Tensor& x, const Group& group) { return x + group.get()->getRank(); },
      [](const at::Tensor& x, const Group& group) { return x + group.ranks().front(); },
      [](const at::Tensor& x, const Group& group) { return x + static_cast<double>(group.name().size()); },
      [](const at::Tensor& x, const Group& group) { return functional::all_reduce(x, group); },
      [](const at::Tensor& x, const Group& group) {
        at::Tensor sum = x * 2;
        group.allreduce(sum)->wait();
        return sum;
      },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    on_two_ranks([&](RankContext& ctx) {
      const TwoGroups groups(ctx);
      Group group = groups.straight;
      auto whole = compile([&](const at::Tensor& x) { return uses[i](x, group); }, {.fullgraph = true});
      EXPECT_THAT(
          refusal_of(whole),
          MatchesRegex("a method of the group \"straight\", which is neither an argument nor watched, is called in a "
                       "captured function, at group_guards_test.cpp:[0-9]+ in .*::lambda\\. Make the group an .*"))
          << i;
      EXPECT_THAT(refusal_of(whole), HasSubstr(kCure)) << i;
      // Without fullgraph, the function runs in eager mode, with the current group.
      auto as_it_is = compile([&](const at::Tensor& x) { return uses[i](x, group); });
      const at::Tensor x = at::arange(2.) + ctx.rank();
      for (const Group* const now : {&groups.straight, &groups.crossed, &groups.straight}) {
        group = *now;
        EXPECT_THAT(as_it_is(x), BitEqual(uses[i](x, *now))) << i;
      }
      EXPECT_EQ(as_it_is.stats().compiles, 0) << i;
      EXPECT_THAT(as_it_is.explain().refusal, HasSubstr("\"straight\"")) << i;
    });
  }
}

using PointerUse = double (*)(const c10::intrusive_ptr<c10d::ProcessGroup>& group);
constexpr PointerUse kQuestions[] = {
    [](const c10::intrusive_ptr<c10d::ProcessGroup>& group) -> double { return group->getRank(); },
    [](const c10::intrusive_ptr<c10d::ProcessGroup>& group) -> double { return group->getSize(); },
    [](const c10::intrusive_ptr<c10d::ProcessGroup>& group) -> double { return group->getBackendName().size(); },
    [](const c10::intrusive_ptr<c10d::ProcessGroup>& group) -> double { return group->getGroupName().size(); },
};

TEST(GroupGuards, AProcessGroupFoundByReference_IsRefusedAtAQuestion) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    const Group other = fakes::lone_group(2, 3, "another one");
    for (const PointerUse question : kQuestions) {
      c10::intrusive_ptr<c10d::ProcessGroup> group = groups.straight.get();
      const auto code = [&](const at::Tensor& x) { return x + question(group); };
      auto whole = compile(code, {.fullgraph = true});
      EXPECT_THAT(refusal_of(whole), HasSubstr("a method of the group \"straight\", which is neither"));
      auto as_it_is = compile(code);
      for (const Group* const now : {&groups.straight, &groups.crossed, &other, &groups.straight}) {
        group = now->get();
        EXPECT_THAT(as_it_is(at::ones({2})), BitEqual(at::ones({2}) + question(group)));
      }
      auto watched = compile([&](const at::Tensor& x) { return x + question(watch(group)); }, {.fullgraph = true});
      for (const Group* const now : {&groups.straight, &other, &groups.straight}) {
        group = now->get();
        EXPECT_THAT(watched(at::ones({2})), BitEqual(at::ones({2}) + question(group)));
      }
      EXPECT_EQ(watched.stats().compiles, 2);
    }
  });
}

// Nothing can change these pointers.
TEST(GroupGuards, AProcessGroupThatIsAnArgumentOrKeptByValue_NeedsNoWatch) {
  on_two_ranks([](RankContext& ctx) {
    const c10::intrusive_ptr<c10d::ProcessGroup> group = TwoGroups(ctx).crossed.get();
    for (const PointerUse question : kQuestions) {
      auto kept = compile(
          [question, group](const at::Tensor& x) {
            std::vector<at::Tensor> sums{x * question(group)};
            group->allreduce(sums)->wait();
            return sums.front();
          },
          {.fullgraph = true});
      auto given = compile(
          [question](const at::Tensor& x, const c10::intrusive_ptr<c10d::ProcessGroup>& of) {
            return functional::all_reduce(x * question(of), of);
          },
          {.fullgraph = true});
      for (int call = 0; call < 2; ++call) {
        EXPECT_THAT(kept(at::ones({2})), BitEqual(given(at::ones({2}), group)));
      }
      EXPECT_EQ(kept.stats().compiles, 1);
    }
  });
}

TEST(GroupGuards, AProcessGroupFoundByReference_IsRefusedWhereItCommunicates) {
  on_two_ranks([](RankContext& ctx) {
    c10::intrusive_ptr<c10d::ProcessGroup> group = TwoGroups(ctx).straight.get();
    auto in_place = compile(
        [&](const at::Tensor& x) {
          std::vector<at::Tensor> sums{x * 2};
          group->allreduce(sums)->wait();
          return sums.front();
        },
        {.fullgraph = true});
    EXPECT_THAT(refusal_of(in_place), HasSubstr("the group \"straight\", which is neither"));
    auto functional =
        compile([&](const at::Tensor& x) { return functional::all_reduce(x, group); }, {.fullgraph = true});
    EXPECT_THAT(refusal_of(functional), HasSubstr("the group \"straight\", which is neither"));
    auto watched =
        compile([&](const at::Tensor& x) { return functional::all_reduce(x, watch(group)); }, {.fullgraph = true});
    EXPECT_THAT(watched(at::ones({2})), BitEqual(at::full({2}, 2.0)));
  });
}

TEST(GroupGuards, AGroupAsAResult_IsThatOfTheCallOrRefused) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    auto given_back =
        compile([](const at::Tensor& x, const Group& group) { return std::pair(x * 2, group); }, {.fullgraph = true});
    for (const Group* const group : {&groups.straight, &groups.crossed, &groups.straight}) {
      EXPECT_EQ(given_back(at::ones({2}), *group).second.get(), group->get());
    }
    EXPECT_EQ(given_back.stats().compiles, 2);
    Group group = groups.straight;
    auto found = compile([&](const at::Tensor& x) { return std::pair(x * 2, group); }, {.fullgraph = true});
    EXPECT_THAT(refusal_of(found),
                HasSubstr("the function returns the group \"straight\", which is neither an argument "
                          "nor watched"));
    auto as_it_is = compile([&](const at::Tensor& x) { return std::pair(x * 2, group); });
    for (const Group* const now : {&groups.straight, &groups.crossed}) {
      group = *now;
      EXPECT_EQ(as_it_is(at::ones({2})).second.get(), now->get());
    }
  });
}

TEST(GroupGuards, TheWorld_IsGuardedHoweverItIsFound) {
  on_two_ranks([](RankContext& ctx) {
    const auto code = [&](const at::Tensor& x) {
      const Group world = world_group();
      return x + world.size() + ctx.group().size();
    };
    auto sizes = compile(code, {.fullgraph = true});
    const at::Tensor x = at::zeros({2});
    EXPECT_THAT(sizes(x), BitEqual(x + 4));
    EXPECT_THAT(sizes(x), BitEqual(x + 4));
    EXPECT_EQ(sizes.stats().compiles, 1);

    // Gives the rank another world group, as a later incarnation of the rank would have.
    const Group alone = ctx.new_local_group({ctx.rank()});
    const WorldGroups::Entry other(*exec::WorldLocal<WorldGroups>::find(), ctx.rank(), alone);
    auto size = compile([](const at::Tensor& x) { return x + world_group().size(); }, {.fullgraph = true});
    EXPECT_THAT(size(x), BitEqual(x + 1));
    {
      const WorldGroups::Entry again(*exec::WorldLocal<WorldGroups>::find(), ctx.rank(), ctx.group());
      EXPECT_THAT(size(x), BitEqual(x + 2));
      EXPECT_EQ(size.stats().compiles, 2);
      EXPECT_EQ(size.explain().recompiles.front().failures.front().source, "world_group()");
    }
  });
}

// An eager region between two graphs runs in each call, with the current group.
TEST(GroupGuards, AnEagerRegion_MayTakeAnyGroup) {
  on_two_ranks([](RankContext& ctx) {
    const TwoGroups groups(ctx);
    Group group = groups.straight;
    auto compiled = compile([&](const at::Tensor& x) {
      at::Tensor y = x * 2;
      eager_region([](const at::Tensor& t, const Group& among) { among.allreduce(t)->wait(); }, y, std::ref(group));
      return y + 1;
    });
    for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 5.0)));
    EXPECT_EQ(compiled.stats().eager_calls, 0);
  });
}

}  // namespace
