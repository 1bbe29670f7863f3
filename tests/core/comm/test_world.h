// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/no_rank_state.h"

namespace rehearse::comm {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class MockOracle : public Oracle {
 public:
  MockOracle() { ON_CALL(*this, choose).WillByDefault(testing::Return(0)); }
  MOCK_METHOD(std::uint32_t, choose,
              (ChoiceKind kind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t> weights),
              (override));
};

class ManualClock final : public exec::Clock {
 public:
  VirtualTime now() const noexcept override { return now_; }
  void advance_to(VirtualTime time) noexcept override { now_ = std::max(now_, time); }

 private:
  VirtualTime now_{};
};

class MockSink : public CheckerSink {
 public:
  MOCK_METHOD(void, on_mismatch, (const Mismatch& mismatch), (override));
};

// Moves no bytes. Completes a transfer after `takes`: at once if that is zero, never if it is negative.
class MockFabric : public Fabric {
 public:
  explicit MockFabric(exec::Clock& clock) : clock_(clock) {
    ON_CALL(*this, launch).WillByDefault([this](const Transfer&, Completion& done) { finish(done); });
    ON_CALL(*this, device_types).WillByDefault([this] { return Fabric::device_types(); });
    ON_CALL(*this, cancel).WillByDefault([this](Completion& done) { forget(done); });
  }
  MOCK_METHOD(std::span<const c10::DeviceType>, device_types, (), (const, noexcept, override));
  MOCK_METHOD(bool, takes_shorter_messages, (), (const, noexcept, override));
  MOCK_METHOD(void, open, (const GroupIdentity& group, const GroupIdentity* parent), (override));
  MOCK_METHOD(void, close, (const GroupIdentity& group), (noexcept, override));
  MOCK_METHOD(void, abort, (const GroupIdentity& group, int rank), (noexcept, override));
  MOCK_METHOD(void, prepare, (Operation & call, const GroupIdentity& group, int rank), (override));
  MOCK_METHOD(void, launch, (const Transfer& transfer, Completion& done), (override));
  MOCK_METHOD(void, cancel, (Completion & done), (noexcept, override));

  VirtualDuration takes{0};

 private:
  class Arrival final : public exec::Timer {
   public:
    explicit Arrival(Completion& done) : done_(&done) {}
    Completion* const done_;

   private:
    void fire() override { done_->on_complete(); }
  };

  void finish(Completion& done) {
    if (takes < VirtualDuration::zero()) return;
    if (takes == VirtualDuration::zero()) return done.on_complete();
    arrivals_.push_back(std::make_unique<Arrival>(done));
    timers_ = &exec::RankExecutor::current()->timers();
    timers_->arm(*arrivals_.back(), clock_.now() + takes);
  }

  void forget(Completion& done) {
    for (const auto& arrival : arrivals_) {
      if (arrival->done_ == &done) timers_->cancel(*arrival);
    }
  }

  exec::Clock& clock_;
  std::vector<std::unique_ptr<Arrival>> arrivals_;
  exec::TimerQueue* timers_ = nullptr;
};

class EndWorld final : public exec::FailureSink {
 public:
  Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
};

// A world made by hand: real c10d::ProcessGroups on fibers over a mock fabric. The schedule is round robin unless a
// test sets the oracle's answers.
class CommTest : public testing::Test {
 protected:
  using Body = std::function<void(int rank, const ProcessGroup& group)>;

  CommTest() {
    ON_CALL(sink, on_mismatch).WillByDefault([this](const Mismatch& mismatch) { mismatches.push_back(mismatch); });
    options.register_groups = false;  // all ranks share one registry here
  }

  // Runs `body` on each rank with the world's group. The communicators, and all operations in flight, end when run()
  // returns.
  exec::RunOutcome run(int ranks, const Body& body) {
    exec::NoRankState state;
    return run(ranks, state, body);
  }

  exec::RunOutcome run(int ranks, exec::RankState& state, const Body& body) {
    log_options.ranks = ranks;
    events = std::make_unique<EventLog>(log_options);
    DecisionLog decision_log;
    Decisions decisions(oracle, decision_log);
    EndWorld failures;
    exec::ExecutorOptions execution;
    execution.ranks = ranks;
    exec::RankExecutor executor(execution, decisions, clock, state, failures);
    Communicators all(executor, fabric, *events, sink, options);
    communicators = &all;
    auto outcome = executor.run([&](int rank) {
      const auto group = all.new_world_group();
      body(rank, group);
    });
    pending = all.pending();
    pending_groups = all.pending_groups();
    communicators = nullptr;
    return outcome;
  }

  // Expects that the call fails on rank 0 of 2 at once, with `text` in its error, and that later calls work.
  void expect_refused(const std::function<void(const ProcessGroup& group)>& call, const char* text) {
    const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
      if (rank == 0) {
        try {
          call(group);
          ADD_FAILURE() << "nothing was thrown";
        } catch (const c10::Error& error) {
          EXPECT_THAT(error.what_without_backtrace(), testing::HasSubstr(text));
        }
      }
      EXPECT_TRUE(group->barrier()->wait());
    });
    EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
    EXPECT_TRUE(mismatches.empty());
  }

  // The error text of the first rank that failed; empty if none did.
  static std::string failure(const exec::RunOutcome& outcome) {
    return outcome.failures.empty() ? "" : outcome.failures.front().what;
  }

  ManualClock clock;
  testing::NiceMock<MockOracle> oracle;
  testing::NiceMock<MockFabric> fabric{clock};
  testing::NiceMock<MockSink> sink;
  CommunicatorOptions options;
  EventLogOptions log_options;
  std::unique_ptr<EventLog> events;
  Communicators* communicators = nullptr;  // non-null while a world runs
  std::vector<Mismatch> mismatches;
  std::vector<PendingOperation> pending;  // of the last world
  std::vector<PendingGroup> pending_groups;
};

// c10d's calls with one tensor per rank.

inline WorkPtr allreduce(const ProcessGroup& group, const at::Tensor& tensor,
                         const c10d::ReduceOp& op = c10d::ReduceOp::SUM) {
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  return group->allreduce(tensors, options);
}

inline WorkPtr broadcast(const ProcessGroup& group, const at::Tensor& tensor, int root = 0) {
  std::vector<at::Tensor> tensors{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return group->broadcast(tensors, options);
}

inline WorkPtr send(const ProcessGroup& group, const at::Tensor& tensor, int to, int tag = 0) {
  std::vector<at::Tensor> tensors{tensor};
  return group->send(tensors, to, tag);
}

inline WorkPtr recv(const ProcessGroup& group, const at::Tensor& tensor, int from, int tag = 0) {
  std::vector<at::Tensor> tensors{tensor};
  return group->recv(tensors, from, tag);
}

inline WorkPtr recv_any(const ProcessGroup& group, const at::Tensor& tensor, int tag = 0) {
  std::vector<at::Tensor> tensors{tensor};
  return group->recvAnysource(tensors, tag);
}

inline WorkPtr alltoall(const ProcessGroup& group, at::Tensor output, at::Tensor input,
                        std::vector<std::int64_t> output_splits = {}, std::vector<std::int64_t> input_splits = {}) {
  return group->alltoall_base(output, input, output_splits, input_splits);
}

}  // namespace rehearse::comm
