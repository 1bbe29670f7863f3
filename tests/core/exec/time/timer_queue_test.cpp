// SPDX-License-Identifier: BSD-3-Clause
// Timers fire in order of time, and timers of equal times in order of arming.
#include <rehearse_internal/exec/timer_queue.h>

#include <map>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace rehearse::exec {
namespace {

using namespace std::chrono_literals;

class NotingTimer final : public Timer {
 public:
  NotingTimer(int name, std::vector<int>& fired) : name_(name), fired_(fired) {}
  std::function<void()> then;

 private:
  void fire() override {
    fired_.push_back(name_);
    if (then) then();
  }
  int name_;
  std::vector<int>& fired_;
};

VirtualTime at(int milliseconds) { return kTimeZero + std::chrono::milliseconds(milliseconds); }

TEST(TimerQueue, EqualTimes_FireInOrderOfArming) {
  TimerQueue queue;
  std::vector<int> fired;
  NotingTimer a(1, fired), b(2, fired), c(3, fired), early(4, fired);
  queue.arm(c, at(5));
  queue.arm(a, at(5));
  queue.arm(early, at(4));
  queue.arm(b, at(5));
  EXPECT_EQ(queue.next_due(), at(4));
  EXPECT_EQ(queue.fire_due(at(5)), 4u);
  EXPECT_EQ(fired, (std::vector<int>{4, 3, 1, 2}));
  EXPECT_FALSE(queue.next_due());
}

TEST(TimerQueue, EqualTimes_FireAsTheyArePicked) {
  TimerQueue queue;
  std::vector<int> fired;
  std::vector<std::unique_ptr<NotingTimer>> timers;
  for (int name = 0; name < 12; ++name) {
    timers.push_back(std::make_unique<NotingTimer>(name, fired));
    queue.arm(*timers.back(), at(name % 3));
  }
  queue.cancel(*timers[4]);
  std::vector<std::uint32_t> counts;
  const auto last = [&](std::uint32_t count) {
    counts.push_back(count);
    return count - 1;
  };
  EXPECT_EQ(queue.fire_due(at(2), last), 11u);
  EXPECT_EQ(fired, (std::vector<int>{9, 6, 3, 0, 10, 7, 1, 11, 8, 5, 2}));
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{4, 3, 2, 3, 2, 4, 3, 2}));
}

TEST(TimerQueue, Cancelled_DoesNotFireAndMayBeArmedAgain) {
  TimerQueue queue;
  std::vector<int> fired;
  NotingTimer a(1, fired), b(2, fired);
  queue.arm(a, at(1));
  queue.arm(b, at(2));
  queue.cancel(a);
  queue.cancel(a);
  EXPECT_FALSE(a.armed());
  EXPECT_EQ(queue.next_due(), at(2));
  EXPECT_EQ(queue.fire_due(at(2)), 1u);
  queue.arm(a, at(3));
  EXPECT_EQ(queue.fire_due(at(2)), 0u);
  EXPECT_EQ(queue.fire_due(at(3)), 1u);
  EXPECT_EQ(fired, (std::vector<int>{2, 1}));
}

TEST(TimerQueue, ArmedWhileFiring_FiresInTheSameCallWhenDue) {
  TimerQueue queue;
  std::vector<int> fired;
  NotingTimer a(1, fired);
  int rounds = 0;
  a.then = [&] {
    if (++rounds < 3) queue.arm(a, at(1));
    if (rounds == 3) queue.arm(a, at(9));
  };
  queue.arm(a, at(1));
  EXPECT_EQ(queue.fire_due(at(1)), 3u);
  EXPECT_TRUE(a.armed());
  EXPECT_EQ(queue.next_due(), at(9));
  queue.cancel(a);
}

TEST(TimerQueueDeathTest, DestroyedWhileArmed_SaysSo) {
  EXPECT_DEATH(
      {
        TimerQueue queue;
        std::vector<int> fired;
        NotingTimer a(1, fired);
        queue.arm(a, at(1));
      },
      "not !armed.. .slot_ = 0, due_.time_since_epoch...count.. = 1.*, outside of ranks");
}

TEST(TimerQueueDeathTest, ArmedTwiceOrCancelledElsewhere_IsABrokenInvariant) {
  TimerQueue queue, other;
  std::vector<int> fired;
  NotingTimer a(1, fired);
  queue.arm(a, at(1));
  EXPECT_DEATH(queue.arm(a, at(2)), "not !timer.armed.. .timer.slot_ = 0, events_.size.. = 1, ");
  EXPECT_DEATH(other.cancel(a), "heap.slot. == &timer .slot = 0, heap.size.. = 0.");
  queue.cancel(a);
}

// Any sequence of arming, cancelling and firing agrees with a multimap by time, in which equal keys keep their order.
TEST(TimerQueue, AnyOperations_LikeMultimap) {
  constexpr int timers = 12;
  rc::check("the queue fires what a multimap by time would", [] {
    TimerQueue queue;
    std::vector<int> fired, expected;
    std::vector<std::unique_ptr<NotingTimer>> all;
    for (int k = 0; k < timers; ++k) all.push_back(std::make_unique<NotingTimer>(k, fired));
    std::multimap<VirtualTime, int> model;
    const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
        rc::gen::tuple(rc::gen::inRange(0, 4), rc::gen::inRange(0, timers), rc::gen::inRange(0, 20)));
    for (const auto& [action, name, time] : steps) {
      auto& timer = *all[static_cast<std::size_t>(name)];
      if (action == 3) {
        queue.fire_due(at(time));
        const auto end = model.upper_bound(at(time));
        for (auto it = model.begin(); it != end; ++it) expected.push_back(it->second);
        model.erase(model.begin(), end);
        continue;
      }
      std::erase_if(model, [name = name](const auto& entry) { return entry.second == name; });
      queue.cancel(timer);
      if (action == 0) continue;
      queue.arm(timer, at(time));
      model.emplace(at(time), name);
      RC_ASSERT(queue.next_due() == model.begin()->first);
    }
    for (auto& timer : all) queue.cancel(*timer);
    RC_ASSERT(!queue.next_due());
    RC_ASSERT(fired == expected);
  });
}

}  // namespace
}  // namespace rehearse::exec
