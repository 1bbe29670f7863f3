// SPDX-License-Identifier: BSD-3-Clause
#include "real_world.h"

#include "core/exec/no_rank_state.h"

namespace rehearse::real {
namespace {

using testing::NiceMock;

// Looks at the devices while any operation is in flight.
class Poller final : public exec::Timer {
 public:
  Poller(NcclFabric& fabric, exec::TimerQueue& timers, exec::Clock& clock)
      : fabric_(fabric), timers_(timers), clock_(clock) {}
  ~Poller() override { timers_.cancel(*this); }

  void look_from_now_on() {
    if (!armed()) timers_.arm(*this, clock_.now() + std::chrono::microseconds(1));
  }

 private:
  void fire() override {
    FakeCuda::instance().run();
    fabric_.poll();
    if (fabric_.pending()) look_from_now_on();
  }

  NcclFabric& fabric_;
  exec::TimerQueue& timers_;
  exec::Clock& clock_;
};

// Forwards all calls, and starts looking at the devices at each launch.
class PolledFabric final : public comm::Fabric {
 public:
  PolledFabric(comm::Fabric& fabric, Poller& poller) : fabric_(fabric), poller_(poller) {}

  std::span<const c10::DeviceType> device_types() const noexcept override { return fabric_.device_types(); }
  bool takes_shorter_messages() const noexcept override { return fabric_.takes_shorter_messages(); }
  void open(const comm::GroupIdentity& group, const comm::GroupIdentity* parent) override {
    fabric_.open(group, parent);
  }
  void close(const comm::GroupIdentity& group) noexcept override { fabric_.close(group); }
  void abort(const comm::GroupIdentity& group, int rank) noexcept override { fabric_.abort(group, rank); }
  void prepare(comm::Operation& call, const comm::GroupIdentity& group, int rank) override {
    fabric_.prepare(call, group, rank);
  }
  void launch(const comm::Transfer& transfer, comm::Completion& done) override {
    poller_.look_from_now_on();
    fabric_.launch(transfer, done);
  }
  void cancel(comm::Completion& done) noexcept override { fabric_.cancel(done); }

 private:
  comm::Fabric& fabric_;
  Poller& poller_;
};

}  // namespace

exec::RunOutcome RealWorld::run(int ranks, const Body& body) {
  comm::EventLogOptions kept;
  kept.ranks = ranks;
  comm::EventLog events(kept);
  DecisionLog decision_log;
  NiceMock<comm::MockOracle> oracle;
  Decisions decisions(oracle, decision_log);
  comm::ManualClock clock;
  exec::NoRankState state;
  comm::EndWorld failures;
  NiceMock<comm::MockSink> sink;
  exec::ExecutorOptions execution;
  execution.ranks = ranks;
  exec::RankExecutor executor(execution, decisions, clock, state, failures);
  const fakes::ZeroCost costs;
  fakes::FakeFabric host(executor.timers(), clock, costs);
  NcclFabricOptions options = devices;
  for (int rank = static_cast<int>(options.devices.size()); rank < ranks; ++rank) options.devices.push_back(rank);
  NcclFabric fabric(nccl, host, clock, options);
  Poller poller(fabric, executor.timers(), clock);
  PolledFabric polled(fabric, poller);
  comm::Communicators all(executor, polled, events, sink, communication);
  communicators = &all;
  auto outcome = executor.run([&](int rank) {
    const auto group = all.new_world_group();
    body(rank, group);
  });
  pending = all.pending();
  communicators = nullptr;
  return outcome;
}

}  // namespace rehearse::real
