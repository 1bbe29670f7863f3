// SPDX-License-Identifier: BSD-3-Clause
// What is fetched ahead follows the oracle's guesses: they ask for the choices that come, and change nothing.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <rehearse/exec/this_rank.h>
#include <rehearse/exec/wait_queue.h>

#include "world_fixture.h"

namespace rehearse::exec::test {
namespace {

// Answers as SeededOracle; its guesses are whatever `bits` are.
class WildGuesses final : public Oracle {
 public:
  WildGuesses(std::uint64_t seed, std::uint32_t bits) : answers_(seed), bits_(bits) {}
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates) override {
    return answers_.choose(kind, candidates);
  }
  std::uint32_t guess(ChoiceKind, std::uint32_t options, std::uint32_t skipped) const noexcept override {
    return bits_ * (options + skipped);
  }

 private:
  SeededOracle answers_;
  std::uint32_t bits_;
};

class NothingToSee final : public Observer {
 public:
  std::string describe() const override { return "a meeting"; }
};

// Some yield, some wait for the last one to come, some end early.
void mixed_work(int rank, int ranks, int& arrived, WaitQueue& queue) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < rank % 3; ++i) this_rank::yield();
    if (rank % 5 == 4) return;
    if (++arrived == (ranks - ranks / 5) * (round + 1)) {
      queue.notify_all();
    } else {
      queue.wait(NothingToSee());
    }
  }
}

std::pair<std::uint64_t, std::uint64_t> identity(Oracle& oracle, int ranks) {
  World w(ranks);
  Decisions decisions(oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  int arrived = 0;
  WaitQueue queue;
  const auto outcome = executor.run([&](int rank) { mixed_work(rank, ranks, arrived, queue); });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  return {w.log.hash(), w.log.steps()};
}

TEST(Guess, AnyAnswer_LeavesTheRunAsItIs) {
  for (const int ranks : {2, 3, 8, 65, 256}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      SeededOracle plain(seed);
      const auto expected = identity(plain, ranks);
      for (const std::uint32_t bits : {1u, 2u, 0x7fffffffu, 0xffffffffu}) {
        WildGuesses wild(seed, bits);
        EXPECT_EQ(identity(wild, ranks), expected) << ranks << " ranks, seed " << seed << ", bits " << bits;
      }
    }
  }
}

// Counts how often a choice had as many candidates as the guesses about it said.
class GuessesKept final : public Oracle {
 public:
  explicit GuessesKept(std::uint64_t seed) : answers_(seed) {}

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates) override {
    ++choices;
    const auto [first, last] = about_.equal_range(choices);
    right += std::count_if(first, last, [&](const auto& entry) { return entry.second == candidates.size(); });
    guesses += std::distance(first, last);
    return answers_.choose(kind, candidates);
  }
  std::uint32_t guess(ChoiceKind, std::uint32_t options, std::uint32_t skipped) const noexcept override {
    about_.emplace(choices + 1 + static_cast<int>(skipped), options);
    return 0;
  }

  int choices = 0;
  std::ptrdiff_t guesses = 0;  // about choices that came
  std::ptrdiff_t right = 0;

 private:
  SeededOracle answers_;
  mutable std::multimap<int, std::size_t> about_;
};

// `body` on every rank, under the oracle that counts.
GuessesKept counted(int ranks, const std::function<void()>& body) {
  GuessesKept oracle(1);
  World w(ranks);
  Decisions decisions(oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  executor.run([&](int) { body(); });
  return oracle;
}

TEST(Guess, RanksThatYield_EveryChoiceIsGuessedTwiceAndRight) {
  constexpr int kRanks = 16;
  constexpr int kYields = 200;
  const auto oracle = counted(kRanks, [] {
    for (int i = 0; i < kYields; ++i) this_rank::yield();
  });
  // Where the ranks begin to yield, and where each ends, two guesses do not fit.
  EXPECT_GE(oracle.choices, kRanks * (kYields - 1));
  EXPECT_GE(oracle.guesses, 2 * oracle.choices - 3);
  EXPECT_GE(oracle.right, oracle.guesses - 4 * (kRanks + 1));
}

TEST(Guess, RanksThatMeet_EveryChoiceIsGuessedTwiceAndRight) {
  constexpr int kRanks = 16;
  constexpr int kRounds = 200;
  int arrived = 0;
  WaitQueue queue;
  const auto oracle = counted(kRanks, [&] {
    for (int round = 0; round < kRounds; ++round) {
      if (++arrived % kRanks == 0) {
        queue.notify_all();
      } else {
        queue.wait(NothingToSee());
      }
    }
  });
  // The last one to come goes on at once: the others are chosen one by one, the last of them without a choice.
  EXPECT_GE(oracle.choices, (kRanks - 2) * kRounds);
  EXPECT_GE(oracle.guesses, (2 * (kRanks - 2) - 4) * kRounds);
  EXPECT_GE(oracle.right, oracle.guesses - 4 * kRounds);
}

}  // namespace
}  // namespace rehearse::exec::test
