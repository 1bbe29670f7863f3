// SPDX-License-Identifier: BSD-3-Clause
// The executor's calls to its collaborators, one by one.
#include <cstring>

#include <gmock/gmock.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::InSequence;
using ::testing::IsEmpty;
using ::testing::Return;
using ::testing::StrictMock;

class MockOracle : public Oracle {
 public:
  MOCK_METHOD(std::uint32_t, choose, (ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t>),
              (override));
};

class MockClock : public Clock {
 public:
  MOCK_METHOD(VirtualTime, now, (), (const, noexcept, override));
  MOCK_METHOD(void, advance_to, (VirtualTime), (noexcept, override));
};

class MockSink : public FailureSink {
 public:
  MOCK_METHOD(Verdict, on_rank_failure, (const RankFailure&), (override));
};

class MockState : public RankState {
 public:
  MOCK_METHOD(std::size_t, image_bytes, (), (const, noexcept, override));
  MOCK_METHOD(void, create_image, (std::byte*, int, std::uint32_t), (override));
  MOCK_METHOD(void, exchange, (std::byte*, const std::byte*), (noexcept, override));
  MOCK_METHOD(void, end_fiber, (int, std::uint32_t), (noexcept, override));
};

TEST(Collaborators, Oracle_IsAskedOncePerSwitchWithTheRunnableFibers) {
  StrictMock<MockOracle> oracle;
  World w(3);
  Decisions decisions(oracle, w.log);
  {
    InSequence in_order;
    EXPECT_CALL(oracle, choose(ChoiceKind::next_fiber, ElementsAre(0, 1, 2), IsEmpty())).WillOnce(Return(2));
    EXPECT_CALL(oracle, choose(ChoiceKind::next_fiber, ElementsAre(1, 0, 2), IsEmpty())).WillOnce(Return(0));
    EXPECT_CALL(oracle, choose(ChoiceKind::next_fiber, ElementsAre(0, 2), IsEmpty())).WillOnce(Return(1));
  }
  std::vector<int> order;
  RankExecutor executor(w.options, decisions, w.clock, w.state, w.sink);
  executor.run([&](int rank) {
    if (rank == 2) this_rank::yield();
    order.push_back(rank);
  });
  EXPECT_THAT(order, ElementsAre(1, 2, 0));
}

TEST(Collaborators, Clock_AdvancesOnlyWhenNoFiberCanRun_ToTheNextTimer) {
  StrictMock<MockClock> clock;
  World w(2);
  Decisions decisions(w.oracle, w.log);
  VirtualTime now{};
  EXPECT_CALL(clock, now()).WillRepeatedly([&] { return now; });
  {
    InSequence in_order;
    EXPECT_CALL(clock, advance_to(at(1ms))).WillOnce([&](VirtualTime to) { now = to; });
    EXPECT_CALL(clock, advance_to(at(2ms))).WillOnce([&](VirtualTime to) { now = to; });
  }
  RankExecutor executor(w.options, decisions, clock, w.state, w.sink);
  executor.run([](int rank) { this_rank::sleep_for(1ms * (rank + 1)); });
}

TEST(Collaborators, Sink_HearsEveryFailureOnceInOrderOfTime) {
  StrictMock<MockSink> sink;
  World w(3);
  Decisions decisions(w.oracle, w.log);
  {
    InSequence in_order;
    EXPECT_CALL(sink, on_rank_failure(Field(&RankFailure::rank, 2)))
        .WillOnce(Return(FailureSink::Verdict::keep_running));
    EXPECT_CALL(sink, on_rank_failure(Field(&RankFailure::rank, 0)))
        .WillOnce(Return(FailureSink::Verdict::keep_running));
  }
  RankExecutor executor(w.options, decisions, w.clock, w.state, sink);
  const auto outcome = executor.run([](int rank) {
    this_rank::sleep_for(1ms * (3 - rank));
    if (rank != 1) throw std::runtime_error("late");
  });
  EXPECT_THAT(outcome.failures, ElementsAre(Field(&RankFailure::at, at(1ms)), Field(&RankFailure::at, at(3ms))));
}

// A state of one number, like a thread-local variable.
struct NumberState {
  std::int64_t live = -1;  // the thread's value before the run
  std::vector<std::pair<const std::byte*, const std::byte*>> exchanges;

  void attach(MockState& mock) {
    EXPECT_CALL(mock, image_bytes()).WillRepeatedly(Return(sizeof live));
    EXPECT_CALL(mock, exchange(_, _)).WillRepeatedly([this](std::byte* out, const std::byte* in) {
      std::memcpy(out, &live, sizeof live);
      std::memcpy(&live, in, sizeof live);
      exchanges.emplace_back(out, in);
    });
  }
};

TEST(Collaborators, RankState_EachFiberLivesInItsOwnImage) {
  StrictMock<MockState> state;
  NumberState number;
  number.attach(state);
  World w(3);
  Decisions decisions(w.oracle, w.log);
  const auto image_of = [](int rank, std::uint32_t fiber) { return 100 * rank + static_cast<std::int64_t>(fiber); };
  const auto create = [&](std::byte* image, int rank, std::uint32_t fiber) {
    const auto value = image_of(rank, fiber);
    std::memcpy(image, &value, sizeof value);
  };
  for (int rank = 0; rank < 3; ++rank) {
    for (std::uint32_t fiber : {0u, 1u}) {
      EXPECT_CALL(state, create_image(_, rank, fiber)).WillOnce(create);
      EXPECT_CALL(state, end_fiber(rank, fiber)).WillOnce([&](int r, std::uint32_t f) {
        EXPECT_EQ(number.live, image_of(r, f) + 5);
      });
    }
  }
  const auto use = [&] {
    for (int k = 0; k < 5; ++k) {
      EXPECT_EQ(number.live, image_of(this_rank::rank(), this_rank::fiber_of_rank()) + k);
      ++number.live;
      this_rank::yield();
    }
  };
  RankExecutor executor(w.options, decisions, w.clock, state, w.sink);
  executor.run([&](int) {
    RankExecutor::current()->spawn(use);
    use();
    this_rank::sleep_for(1ms);
  });
  EXPECT_EQ(number.live, -1);
}

// The image that was made live must be the next one saved, so no image is lost or written twice.
TEST(Collaborators, RankState_ExchangesComeInPairs) {
  StrictMock<MockState> state;
  NumberState number;
  number.attach(state);
  EXPECT_CALL(state, create_image(_, _, _)).Times(4);
  EXPECT_CALL(state, end_fiber(_, _)).Times(4);
  World w(4);
  Decisions decisions(w.oracle, w.log);
  RankExecutor executor(w.options, decisions, w.clock, state, w.sink);
  executor.run([](int rank) {
    for (int k = 0; k < 20; ++k) this_rank::yield();
    this_rank::sleep_for(1ms * rank);
  });
  ASSERT_GE(number.exchanges.size(), 2u);
  for (std::size_t k = 1; k < number.exchanges.size(); ++k) {
    EXPECT_EQ(number.exchanges[k].first, number.exchanges[k - 1].second);
  }
  EXPECT_EQ(number.exchanges.front().first, number.exchanges.back().second);
}

}  // namespace
}  // namespace rehearse::exec::test
