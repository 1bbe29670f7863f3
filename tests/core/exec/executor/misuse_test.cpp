// SPDX-License-Identifier: BSD-3-Clause
// Errors of the executor's caller come out of run() or of the call itself, and the thread can run the next world.
#include <rehearse_internal/exec/executor.h>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/no_rank_state.h"
#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

void expect_fit_for_another_world() {
  World next(3);
  EXPECT_EQ(next.run([](int) { this_rank::yield(); }).ending, Ending::all_returned);
}

class CountingOracle final : public Oracle {
 public:
  std::function<std::uint32_t(int asked)> answer;
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t>) override {
    return answer(++asked_);
  }

 private:
  int asked_ = 0;
};

RunOutcome run_with(Oracle& oracle, RankState& state, const std::function<void(int)>& body) {
  DecisionLog log;
  Decisions decisions(oracle, log);
  JumpingClock clock;
  RecordingSink sink;
  ExecutorOptions options;
  options.ranks = 4;
  RankExecutor executor(options, decisions, clock, state, sink);
  return executor.run(body);
}

TEST(ExecutorMisuse, OracleOutOfRange_ComesOutOfRun) {
  CountingOracle oracle;
  NoRankState state;
  oracle.answer = [](int asked) { return asked < 5 ? 0u : 99u; };
  int unwound = 0;
  EXPECT_EQ(error_of([&] {
              run_with(oracle, state, [&](int) {
                struct Unwound {
                  int& count;
                  ~Unwound() { ++count; }
                } unwound_here{unwound};
                for (;;) this_rank::yield();
              });
            }),
            "the oracle answered 99 to choice 'next_fiber', which has candidates 0..3");
  EXPECT_EQ(unwound, 4);
  expect_fit_for_another_world();
}

TEST(ExecutorMisuse, OracleThrows_ComesOutOfRunAsItIs) {
  CountingOracle oracle;
  NoRankState state;
  oracle.answer = [](int asked) -> std::uint32_t {
    if (asked == 7) throw std::out_of_range("the replay no longer fits");
    return 0;
  };
  EXPECT_THROW(run_with(oracle, state,
                        [](int) {
                          for (;;) this_rank::yield();
                        }),
               std::out_of_range);
  expect_fit_for_another_world();
}

class FailingState final : public RankState {
 public:
  explicit FailingState(int rank, std::uint32_t fiber) : rank_(rank), fiber_(fiber) {}
  std::size_t image_bytes() const noexcept override { return 8; }
  void create_image(std::byte*, int rank, std::uint32_t fiber) override {
    if (rank == rank_ && fiber == fiber_) throw std::runtime_error("no image");
  }
  void exchange(std::byte*, const std::byte*) noexcept override {}
  void end_fiber(int, std::uint32_t) noexcept override {}

 private:
  int rank_;
  std::uint32_t fiber_;
};

// Ranks that were already created must not stay attached to the thread.
TEST(ExecutorMisuse, RankThatCannotBeCreated_ComesOutOfRunBeforeAnyBodyRan) {
  CountingOracle oracle;
  oracle.answer = [](int) { return 0u; };
  for (int rank : {0, 2}) {
    FailingState state(rank, 0);
    int ran = 0;
    EXPECT_EQ(error_of([&] { run_with(oracle, state, [&](int) { ++ran; }); }), "no image");
    EXPECT_EQ(ran, 0);
  }
  expect_fit_for_another_world();
}

TEST(ExecutorMisuse, HelperThatCannotBeCreated_ThrowsInItsRank) {
  CountingOracle oracle;
  oracle.answer = [](int) { return 0u; };
  FailingState state(1, 1);
  int helpers = 0;
  const auto outcome = run_with(oracle, state, [&](int rank) {
    const auto spawn = [&] { RankExecutor::current()->spawn([&] { ++helpers; }); };
    EXPECT_EQ(error_of(spawn), rank == 1 ? "no image" : "no error");
    spawn();
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(helpers, 7);
}

TEST(ExecutorMisuse, NestedWorlds_AreRefused) {
  World outer(2);
  outer.run([](int) {
    EXPECT_EQ(error_of([] { World(2).run([](int) {}); }),
              "a world is running on this thread already; worlds do not nest");
  });
}

TEST(ExecutorMisuse, SecondRun_IsRefused) {
  World w(2);
  Decisions decisions(w.oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  executor.run([](int) {});
  EXPECT_EQ(error_of([&] { executor.run([](int) {}); }), "RankExecutor::run() was called twice; make another executor");
}

TEST(ExecutorMisuse, NoRanks_AreRefused) {
  EXPECT_EQ(error_of([] { World(0).run([](int) {}); }), "ranks is 0; a world has at least 1 rank");
}

TEST(ExecutorMisuse, OutsideOfARank_CallsSayWhereTheyBelong) {
  const std::string text = " was called outside of a rank; it may only be called in a rank's body";
  WaitQueue queue;
  EXPECT_EQ(error_of([] { this_rank::yield(); }), "this_rank::yield()" + text);
  EXPECT_EQ(error_of([] { this_rank::poll(); }), "this_rank::poll()" + text);
  EXPECT_EQ(error_of([] { this_rank::rank(); }), "this_rank::rank()" + text);
  EXPECT_EQ(error_of([] { this_rank::sleep_for(1ms); }), "this_rank::sleep_for()" + text);
  EXPECT_EQ(error_of([&] { queue.wait(FixedObserver("x")); }), "WaitQueue::wait()" + text);
}

}  // namespace
}  // namespace rehearse::exec::test
