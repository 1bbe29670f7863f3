// SPDX-License-Identifier: BSD-3-Clause
// Each rank has its own copy of the state that libc keeps per process. In each world, this state begins as in a new
// process.
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class ProcessState : public Worlds {};
INSTANTIATE_TEST_SUITE_P(Sizes, ProcessState,
                         ::testing::Combine(::testing::Values(2, 3, 8), ::testing::Values(1, 2, 3)), world_name);

// The reference, from libc's functions that take the state as an argument.
std::vector<int> numbers_of_seed(unsigned seed, int count) {
  random_data data{};
  std::array<char, 128> table{};
  ::initstate_r(seed, table.data(), table.size(), &data);
  std::vector<int> numbers;
  for (int k = 0; k < count; ++k) {
    std::int32_t number = 0;
    ::random_r(&data, &number);
    numbers.push_back(number);
  }
  return numbers;
}

TEST_P(ProcessState, Rand_StartsInEachRankAndWorldAsInANewProcess) {
  ASSERT_EQ(numbers_of_seed(1, 1).front(), 1804289383);  // this libc's first rand() if nobody calls srand()
  ::srand(77);
  for (int repetition = 0; repetition < 2; ++repetition) {
    auto w = world();
    const auto outcome = w.run([](int rank) {
      const auto unseeded = numbers_of_seed(1, 20);
      for (int k = 0; k < 20; ++k) {
        EXPECT_EQ(k % 2 == 0 ? ::rand() : ::random(), unseeded[static_cast<std::size_t>(k)]);
        this_rank::yield();
      }
      const auto seed = static_cast<unsigned>(100 + rank);
      if (rank % 2 == 0) {
        ::srand(seed);
      } else {
        ::srandom(seed);
      }
      for (const int number : numbers_of_seed(seed, 20)) {
        this_rank::yield();
        EXPECT_EQ(std::rand(), number);
      }
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
  }
  const auto outside = numbers_of_seed(77, 2);
  EXPECT_EQ(::rand(), outside[0]);
  EXPECT_EQ(::rand(), outside[1]);
}

TEST_P(ProcessState, ThreadsOfARank_DrawFromItsOneStream) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    ::srand(static_cast<unsigned>(rank + 1));
    std::vector<int> drawn{::rand()};
    for (int k = 0; k < 3; ++k) std::thread([&] { drawn.push_back(::rand()); }).join();
    EXPECT_EQ(drawn, numbers_of_seed(static_cast<unsigned>(rank + 1), 4));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(ProcessState, Setstate_GoesBackAndForthWithinTheRank) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    const int first = static_cast<int>(::random());
    std::array<char, 64> table{};
    char* const before = ::initstate(static_cast<unsigned>(rank + 5), table.data(), table.size());
    const long other = ::random();
    this_rank::yield();
    EXPECT_EQ(::setstate(before), table.data());
    EXPECT_EQ((std::vector<int>{first, static_cast<int>(::random())}), numbers_of_seed(1, 2));
    ::setstate(table.data());
    ::srandom(static_cast<unsigned>(rank + 5));
    EXPECT_EQ(::random(), other);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(ProcessState, Drand48_IsTheRanksOwn) {
  ::srand48(3);
  for (int repetition = 0; repetition < 2; ++repetition) {
    auto w = world();
    const auto outcome = w.run([](int rank) {
      drand48_data data{};
      double expected = 0;
      long whole = 0;
      ::drand48_r(&data, &expected);
      EXPECT_EQ(::drand48(), expected);
      this_rank::yield();
      ::srand48_r(rank, &data);
      ::srand48(rank);
      this_rank::yield();
      ::lrand48_r(&data, &whole);
      EXPECT_EQ(::lrand48(), whole);
      this_rank::yield();
      ::mrand48_r(&data, &whole);
      EXPECT_EQ(::mrand48(), whole);
      std::array<unsigned short, 3> seed{1, 2, static_cast<unsigned short>(rank)};
      ::seed48(seed.data());
      this_rank::yield();
      ::seed48_r(seed.data(), &data);
      ::drand48_r(&data, &expected);
      EXPECT_EQ(::drand48(), expected);
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
  }
  drand48_data data{};
  double expected = 0;
  ::srand48_r(3, &data);
  ::drand48_r(&data, &expected);
  EXPECT_EQ(::drand48(), expected);
}

TEST_P(ProcessState, Strtok_GoesOnWhereTheRankWas) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    std::string text = "a" + std::to_string(rank) + ",b" + std::to_string(rank) + ",c" + std::to_string(rank);
    std::string seen;
    for (char* word = std::strtok(text.data(), ","); word != nullptr; word = std::strtok(nullptr, ",")) {
      seen += word + std::string(" ");
      this_rank::yield();
    }
    const auto number = std::to_string(rank);
    EXPECT_EQ(seen, "a" + number + " b" + number + " c" + number + " ");
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(ProcessState, BrokenDownTimes_StayUntilTheRankAsksAgain) {
  auto w = world();
  const auto outcome = w.run([](int rank) {
    const std::time_t time = 1'000'000'000 + rank * 86'400;
    const std::tm* const utc = std::gmtime(&time);
    const std::tm expected = *utc;
    this_rank::yield();
    EXPECT_EQ(utc->tm_mday, expected.tm_mday);
    EXPECT_EQ(utc->tm_mday, 9 + rank);
    const char* const text = std::asctime(&expected);
    this_rank::yield();
    std::array<char, 32> same{};
    EXPECT_STREQ(text, ::asctime_r(&expected, same.data()));
    const std::tm* const local = std::localtime(&time);
    const char* const of_now = std::ctime(&time);
    this_rank::yield();
    std::tm again{};
    EXPECT_EQ(local->tm_yday, ::localtime_r(&time, &again)->tm_yday);
    EXPECT_STREQ(of_now, ::ctime_r(&time, same.data()));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
