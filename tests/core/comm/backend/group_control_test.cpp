// SPDX-License-Identifier: BSD-3-Clause
// Contract: the functions of c10d::Backend that are not operations. Abort and shutdown concern only the calling rank.
// Hooks run in their rank's context. If ranks make a group from another group, each member finds the new group by name
// and members, whatever the schedule.
#include <rehearse_internal/comm/rank_backend.h>

#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using namespace std::chrono_literals;
using c10d::ErrorType;
using testing::ElementsAre;
using testing::HasSubstr;

using GroupControl = CommTest;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    const auto* const torch = dynamic_cast<const c10::Error*>(&error);
    return torch != nullptr ? torch->what_without_backtrace() : error.what();
  }
  return "nothing was thrown";
}

WorkPtr barrier(const BackendPtr& backend) { return backend->barrier({}); }

TEST_F(GroupControl, Flags_SayWhatIsThere) {
  run(1, [](int, const ProcessGroup& group) {
    const auto backend = group->getDefaultBackend();
    EXPECT_TRUE(backend->supportsSplitting());
    EXPECT_TRUE(backend->supportsCoalescing());
    EXPECT_TRUE(backend->supportsShrinking());
    EXPECT_FALSE(backend->supportsTimeEstimation());
    EXPECT_FALSE(backend->supportsTensorAlloc(0));
    EXPECT_THROW(backend->getMemAllocator(), c10::Error);
    EXPECT_THROW(backend->allocateTensor(8), c10::Error);
    EXPECT_NO_THROW(backend->eagerConnectSingleDevice(at::kCPU));
    EXPECT_NO_THROW(group->enableCollectivesTiming());
    group->setTimeout(7ms);
    EXPECT_EQ(backend->getBackendOptions()->timeout, 7ms);
    EXPECT_EQ(backend->getBackendOptions()->group_desc, "world");
  });
}

// The functions that a LibTorch after 2.11 adds.
template <class Backend>
void expect_newer_refused(Backend& backend) {
  if constexpr (requires { backend.suspend(); }) {
    EXPECT_THROW(backend.suspend(), c10::Error);
    EXPECT_THROW(backend.resume(), c10::Error);
    EXPECT_THROW(backend.getMemoryStats(), c10::Error);
  }
  if constexpr (requires { backend.supportsWindow(); }) {
    EXPECT_FALSE(backend.supportsWindow());
    EXPECT_FALSE(backend.supportsReconfigure());
    EXPECT_THROW(backend.new_window(), c10::Error);
    EXPECT_THROW(backend.get_reconfigure_handle(), c10::Error);
    EXPECT_THROW(backend.registerAbortHook(1, {}), c10::Error);
  }
  if constexpr (requires { backend.isInitialized(); }) {
    EXPECT_TRUE(backend.isInitialized());
    EXPECT_FALSE(backend.supportsAbortHooks());
    EXPECT_FALSE(backend.supportsCompletionHooks());
    EXPECT_THROW(backend.registerCompletionHook(1, {}), c10::Error);
    EXPECT_THROW(backend.startTimeEstimate(), c10::Error);
  }
}

TEST_F(GroupControl, NewerFunctions_AreRefused) {
  run(1, [](int, const ProcessGroup& group) { expect_newer_refused(*group->getDefaultBackend()); });
}

TEST_F(GroupControl, Abort_FailsWhatIsUnderWayAndRefusesTheRest) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) return exec::this_rank::sleep_for(1ms);
    const auto collective = allreduce(group, at::ones({1}));
    const auto sent = send(group, at::ones({1}), 1);
    EXPECT_EQ(group->getDefaultBackend()->getError(), ErrorType::SUCCESS);
    group->abort();
    EXPECT_THROW(collective->wait(), CommError);
    EXPECT_THROW(sent->wait(), CommError);
    EXPECT_EQ(group->getDefaultBackend()->getError(), ErrorType::COMM_ERROR);
    EXPECT_EQ(text_of([&] { allreduce(group, at::ones({1})); }), "rank 0 has aborted the process group \"world\"");
    group->abort();  // a second abort changes nothing
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_TRUE(pending.empty());
}

TEST_F(GroupControl, Abort_LeavesTheOthersWaitingForThisRank) {
  options.timeout = 10ms;
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    if (rank == 0) return group->abort();
    EXPECT_THAT(text_of([&] { work->wait(); }), HasSubstr("missing rank 0"));
    EXPECT_EQ(group->getDefaultBackend()->getError(), ErrorType::TIMEOUT);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(GroupControl, Shutdown_WaitsForWhatIsUnderWay) {
  fabric.takes = 3ms;
  const auto outcome = run(2, [](int, const ProcessGroup& group) {
    const auto work = allreduce(group, at::ones({1}));
    group->shutdown();
    EXPECT_TRUE(work->isSuccess());
    EXPECT_EQ(exec::this_rank::now(), kTimeZero + 3ms);
    EXPECT_THAT(text_of([&] { group->barrier(); }), HasSubstr("has shut down the process group \"world\""));
    EXPECT_EQ(group->getDefaultBackend()->getError(), ErrorType::SUCCESS);
    group->shutdown();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(GroupControl, PendingWorks_AreWaitedForOfEveryKind) {
  fabric.takes = 2ms;
  for (const bool buffered : {false, true}) {
    options.buffered_sends = buffered;
    clock = {};
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
      if (rank == 1) exec::this_rank::sleep_for(5ms);
      const auto reduced = allreduce(group, at::ones({1}));
      const auto message = rank == 0 ? send(group, at::ones({1}), 1) : recv(group, at::ones({1}), 0);
      group->waitForPendingWorks();
      EXPECT_TRUE(reduced->isSuccess());
      EXPECT_TRUE(message->isSuccess());
      EXPECT_EQ(exec::this_rank::now(), kTimeZero + 7ms);
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  }
}

TEST_F(GroupControl, CompletionHook_RunsInTheRanksContextAndInOrder) {
  fabric.takes = 2ms;
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    std::vector<std::uint64_t> seen;
    EXPECT_FALSE(group->hasHooks());
    group->registerOnCompletionHook([&seen, rank](const std::shared_ptr<c10d::WorkInfo>& info) {
      EXPECT_EQ(exec::this_rank::rank(), rank);
      EXPECT_EQ(info->opType, c10d::OpType::ALLREDUCE);
      EXPECT_EQ(info->timeFinished - info->timeStarted, 2ms);
      EXPECT_FLOAT_EQ(info->activeDuration.count(), 0.002f);
      exec::this_rank::sleep_for(1ms);
      seen.push_back(info->seq);
    });
    EXPECT_TRUE(group->hasHooks());
    EXPECT_THAT(text_of([&] { group->registerOnCompletionHook([](const auto&) {}); }), HasSubstr("already registered"));
    for (int i = 0; i < 3; ++i) allreduce(group, at::ones({1}));
    group->waitForPendingWorks();
    EXPECT_THAT(seen, ElementsAre(1, 2, 3));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(GroupControl, Split_MakesGroupsOfTheMembersAlone) {
  const auto outcome = run(4, [](int rank, const ProcessGroup& world) {
    const auto backend = world->getDefaultBackend();
    const std::vector<int> ranks = rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{3, 2};
    const auto half = backend->split({}, ranks, {});
    ASSERT_NE(half, nullptr);
    EXPECT_EQ(half->getSize(), 2);
    EXPECT_EQ(half->getRank(), rank < 2 ? rank : 3 - rank);
    EXPECT_EQ(half->getGroupUid(), rank < 2 ? "world:split:[0, 1]" : "world:split:[3, 2]");
    EXPECT_THAT(half->getBackendOptions()->global_ranks_in_group, rank < 2 ? ElementsAre(0u, 1u) : ElementsAre(3u, 2u));
    barrier(half)->wait();
    EXPECT_EQ(backend->split({}, {(rank + 1) % 4}, {}), nullptr);
    // A second split with the same ranks makes another group.
    const auto again = backend->split({}, ranks, {});
    barrier(again)->wait();
    EXPECT_EQ(again->getSequenceNumberForGroup(), 1u);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(events->groups().size(), 1u + 4u);
  EXPECT_TRUE(pending_groups.empty());
}

TEST_F(GroupControl, OptionsWithoutAName_StayTheCallers) {
  run(2, [](int rank, const ProcessGroup& group) {
    const auto backend = group->getDefaultBackend();
    const auto options = c10::make_intrusive<c10d::Backend::Options>("", 5ms);
    const auto both = backend->split({}, {0, 1}, options);
    EXPECT_EQ(both->getGroupUid(), "world:split:[0, 1]");
    EXPECT_EQ(both->getBackendOptions()->timeout, 5ms);
    EXPECT_EQ(backend->split({}, {rank}, options)->getGroupUid(), "world:split:[" + std::to_string(rank) + "]");
    EXPECT_EQ(options->group_name, "");
  });
}

TEST_F(GroupControl, SplitThatAMemberNeverMakes_IsLeftPending) {
  run(3, [](int rank, const ProcessGroup& world) {
    auto options = world->getDefaultBackend()->getBackendOptions();
    options->group_name = "pair";
    if (rank == 1) world->getDefaultBackend()->split({}, {1, 2}, options);
  });
  ASSERT_EQ(pending_groups.size(), 1u);
  EXPECT_EQ(pending_groups[0].call, "split");
  EXPECT_EQ(pending_groups[0].name, "pair");
  EXPECT_THAT(pending_groups[0].called_by, ElementsAre(1));
  EXPECT_THAT(pending_groups[0].missing, ElementsAre(2));
}

TEST_F(GroupControl, Shrink_LeavesTheOthersOut) {
  const auto outcome = run(4, [](int rank, const ProcessGroup& world) {
    const auto backend = world->getDefaultBackend();
    if (rank == 1) return;
    const auto work = allreduce(world, at::ones({1}));
    const bool abort = rank == 3;
    const auto rest = backend->shrink({1}, abort ? RankBackend::kShrinkAbort : 0);
    EXPECT_EQ(rest->getSize(), 3);
    EXPECT_EQ(rest->getRank(), rank == 0 ? 0 : rank - 1);
    barrier(rest)->wait();
    if (abort) {
      EXPECT_THROW(work->wait(), CommError);
    }
    EXPECT_EQ(backend->getError(), abort ? ErrorType::COMM_ERROR : ErrorType::SUCCESS);
    if (rank == 3) return;
    EXPECT_EQ(rest->shrink({2})->getSize(), 2);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(GroupControl, BadRequests_AreRefused) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& world) {
    if (rank == 1) return;
    const auto backend = world->getDefaultBackend();
    EXPECT_EQ(text_of([&] { backend->split({}, {}, {}); }), "rehearse::split: the list of ranks is empty");
    EXPECT_EQ(text_of([&] { backend->split({}, {0, 2}, {}); }),
              "rehearse::split: rank 2 is out of range; a group of 2 has ranks 0 to 1");
    EXPECT_EQ(text_of([&] { backend->split({}, {0, 0}, {}); }), "rehearse::split: rank 0 is named twice");
    EXPECT_EQ(text_of([&] { backend->shrink({0}); }),
              "rehearse::shrink: rank 0 is one of the ranks to exclude; only the ranks that stay may call shrink()");
    EXPECT_EQ(text_of([&] { backend->shrink({1}, 2); }), "rehearse::shrink: the flags are 2; they are 0 or 1 (abort)");
    EXPECT_EQ(text_of([&] { backend->merge({}, {}, 0, 2); }),
              "rehearse::merge: it needs a store, through which the ranks find each other");
    EXPECT_THAT(text_of([&] { backend->registerOnCompletionHook({}); }), HasSubstr("the hook is empty"));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
