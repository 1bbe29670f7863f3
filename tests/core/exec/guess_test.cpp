// SPDX-License-Identifier: BSD-3-Clause
// What is fetched ahead follows the oracle's guesses: they ask for the choices that come, and change nothing.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <tuple>

#include <rehearse/exec/this_rank.h>
#include <rehearse/exec/wait_queue.h>

#include "world_fixture.h"

namespace rehearse::exec::test {
namespace {

// What a bad guess may look like.
enum class Wild { none, oldest, last, any, beyond, only_the_next_is_beyond, only_the_later_is_beyond };
constexpr Wild kWild[] = {Wild::oldest, Wild::last, Wild::any, Wild::beyond, Wild::only_the_next_is_beyond,
                          Wild::only_the_later_is_beyond};

// Answers as SeededOracle, and may throw at some choice.
class WildGuesses final : public Oracle {
 public:
  WildGuesses(std::uint64_t seed, Wild wild, int choices = -1) : answers_(seed), wild_(wild), choices_left_(choices) {}

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates) override {
    if (choices_left_ >= 0 && choices_left_-- == 0) throw std::runtime_error("no more answers");
    return answers_.choose(kind, candidates);
  }
  std::uint32_t guess(ChoiceKind, std::uint32_t options, std::uint32_t skipped) const noexcept override {
    const auto in_range = static_cast<std::uint32_t>(guesses_() % options);
    switch (wild_) {
      case Wild::none:
        return kNoGuess;
      case Wild::oldest:
        return 0;
      case Wild::last:
        return options - 1;
      case Wild::any:
        return in_range;
      case Wild::beyond:
        return options + in_range;
      case Wild::only_the_next_is_beyond:
        return skipped == 0 ? options + in_range : in_range;
      case Wild::only_the_later_is_beyond:
        return skipped == 0 ? in_range : options + in_range;
    }
    return kNoGuess;
  }

 private:
  SeededOracle answers_;
  mutable std::mt19937 guesses_{7};
  Wild wild_;
  int choices_left_;
};

class NothingToSee final : public Observer {
 public:
  std::string describe() const override { return "a meeting"; }
};

// How a run ends.
enum class Last { well, hung, failed, out_of_steps, out_of_answers };
constexpr Last kLast[] = {Last::well, Last::hung, Last::failed, Last::out_of_steps, Last::out_of_answers};

// Some yield, some wait for the last one to come, some return early, each has a helper now and then.
void mixed_work(int rank, int ranks, Last last, int& arrived, WaitQueue& queue) {
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < rank % 3; ++i) this_rank::yield();
    if (rank % 4 == round) RankExecutor::current()->post(rank, [] { this_rank::yield(); });
    if (rank % 5 == 4) return;
    if (last == Last::hung && rank == 0 && round == 3) return;
    if (last == Last::failed && rank == 1 && round == 3) throw std::runtime_error("no more work");
    if (++arrived == (ranks - ranks / 5) * (round + 1)) {
      queue.notify_all();
    } else {
      queue.wait(NothingToSee());
    }
  }
}

std::tuple<std::uint64_t, std::uint64_t, Ending> way(int ranks, std::uint64_t seed, Last last, Wild wild) {
  WildGuesses oracle(seed, wild, last == Last::out_of_answers ? 2 * ranks : -1);
  World w(ranks);
  if (last == Last::out_of_steps) w.options.steps_max = static_cast<std::uint64_t>(3 * ranks);
  Decisions decisions(oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  int arrived = 0;
  WaitQueue queue;
  try {
    const auto outcome = executor.run([&](int rank) { mixed_work(rank, ranks, last, arrived, queue); });
    return {w.log.hash(), w.log.steps(), outcome.ending};
  } catch (const std::runtime_error&) {
    return {w.log.hash(), w.log.steps(), Ending::stopped};
  }
}

TEST(Guess, AnyAnswer_LeavesTheRunAsItIs) {
  std::set<Ending> endings;
  for (const int ranks : {2, 3, 8, 65, 256}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      for (const Last last : kLast) {
        const auto expected = way(ranks, seed, last, Wild::none);
        endings.insert(std::get<Ending>(expected));
        for (const Wild wild : kWild) {
          EXPECT_EQ(way(ranks, seed, last, wild), expected)
              << ranks << " ranks, seed " << seed << ", ending " << static_cast<int>(last) << ", guesses "
              << static_cast<int>(wild);
        }
      }
    }
  }
  EXPECT_EQ(endings, (std::set{Ending::all_returned, Ending::rank_failed, Ending::deadlock, Ending::step_budget,
                               Ending::stopped}));
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
  // The first choice is not guessed, nor are some among the last two ranks; where the ranks begin to yield, and where
  // each ends, two guesses do not fit.
  EXPECT_GE(oracle.choices, kRanks * (kYields - 1));
  EXPECT_GE(oracle.guesses, 2 * oracle.choices - 6);
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
