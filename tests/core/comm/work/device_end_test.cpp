// SPDX-License-Identifier: BSD-3-Clause
// Contract: an operation on a device ends twice: when it is launched, and when the device has finished it. At the
// launch, waits return and futures become complete. A wait then orders the caller's stream after the operation.
// isCompleted() becomes true, and tensors are released, when the device has finished. The fabric learns of each group,
// and prepares each rank's call before the call is matched.
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using testing::_;
using testing::ElementsAre;

struct Device {
  bool done = false;
  int orders = 0;
};

class End final : public DeviceEnd {
 public:
  explicit End(Device& device) : device_(device) {}
  bool done() noexcept override { return device_.done; }
  void order() noexcept override { ++device_.orders; }
  c10::Stream stream() const noexcept override { return c10::Stream(c10::Stream::DEFAULT, c10::kCPU); }
  std::optional<float> milliseconds() noexcept override { return device_.done ? std::optional(2.5f) : std::nullopt; }

 private:
  Device& device_;
};

// The fabric launches at once. The test decides when the device is done.
class Devices : public CommTest {
 protected:
  Devices() {
    ON_CALL(fabric, prepare).WillByDefault([this](Operation& call, const GroupIdentity&, int) {
      call.end = c10::make_intrusive<End>(devices[static_cast<std::size_t>(exec::this_rank::rank())]);
    });
    ON_CALL(fabric, launch).WillByDefault([this](const Transfer&, Completion& done) {
      launched.push_back(&done);
      done.on_launched();
    });
  }

  void finish(std::size_t transfer) {
    for (auto& device : devices) device.done = true;
    launched[transfer]->on_done();
  }

  Device devices[2];
  std::vector<Completion*> launched;
};

TEST_F(Devices, Wait_EndsAtTheLaunchAndOrdersTheStream) {
  const auto outcome = run(2, [this](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::zeros({1}));
    EXPECT_TRUE(work->wait());
    EXPECT_EQ(launched.size(), 1u);
    EXPECT_EQ(devices[rank].orders, 1);
    EXPECT_FALSE(work->isCompleted());
    EXPECT_FALSE(work->isSuccess());
    EXPECT_EQ(work->result().size(), 1u);
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    if (rank == 0) finish(0);
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(work->isCompleted());
    EXPECT_TRUE(work->isSuccess());
    EXPECT_EQ(work->getDuration(), 2.5f);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_TRUE(pending.empty());
}

TEST_F(Devices, TheDeviceIsAsked_BeforeTheFabricNoticesTheEnd) {
  const auto outcome = run(2, [this](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::zeros({1}));
    work->wait();
    devices[rank].done = true;
    EXPECT_TRUE(work->isCompleted());
    EXPECT_TRUE(work->isSuccess());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(pending.size(), 2u);  // the fabric still holds both operations
}

TEST_F(Devices, Tensors_LiveUntilTheEnd) {
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> kept{
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>{}};
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    {
      const auto tensor = at::zeros({1});
      if (rank == 0) kept = decltype(kept)(tensor.getIntrusivePtr());
      allreduce(group, tensor)->wait();
    }
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    if (rank == 1) return;
    EXPECT_FALSE(kept.expired());
    finish(0);
    EXPECT_TRUE(kept.expired());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(Devices, Futures_AreMarkedAtTheLaunchAndNotAgain) {
  int marked = 0;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::zeros({1}));
    work->getFuture()->addCallback([&marked](c10::ivalue::Future&) { ++marked; });
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(marked, 2);
    if (rank == 0) finish(0);
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_EQ(marked, 2);
}

// Before the launch, the operation's timeout applies. After the launch, the fabric is responsible for time limits.
TEST_F(Devices, TimeLimit_CountsUntilTheLaunch) {
  options.timeout = std::chrono::milliseconds(5);
  const auto outcome = run(2, [this](int rank, const ProcessGroup& group) {
    std::vector<WorkPtr> works{allreduce(group, at::zeros({1}))};
    works.push_back(rank == 0 ? send(group, at::zeros({1}), 1) : recv(group, at::zeros({1}), 0));
    for (const auto& work : works) EXPECT_TRUE(work->wait());
    exec::this_rank::sleep_for(std::chrono::milliseconds(20));
    if (rank == 0) {
      finish(0);
      finish(1);
    }
    for (const auto& work : works) EXPECT_EQ(work->exception(), nullptr);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

std::exception_ptr device_error() {
  return std::make_exception_ptr(CommError("the device is lost", "world", 0, {0, 1}));
}

TEST_F(Devices, FailureBeforeTheLaunch_IsThrownByWaitOnEachRank) {
  ON_CALL(fabric, launch).WillByDefault([this](const Transfer&, Completion& done) { launched.push_back(&done); });
  std::vector<std::string> errors(2);
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    const auto work = rank == 0 ? send(group, at::zeros({1}), 1) : recv(group, at::zeros({1}), 0);
    const auto collective = allreduce(group, at::zeros({1}));
    if (rank == 0) {
      exec::this_rank::sleep_for(std::chrono::milliseconds(1));
      for (auto* const each : launched) each->on_failed(device_error());
    }
    EXPECT_THROW(work->wait(), CommError);
    try {
      collective->wait();
    } catch (const CommError& error) {
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
    EXPECT_EQ(group->getDefaultBackend()->getError(), c10d::ErrorType::COMM_ERROR);
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(errors, ElementsAre("the device is lost", "the device is lost"));
  EXPECT_TRUE(pending.empty());
}

TEST_F(Devices, FailureAfterTheLaunch_IsKnownToTheWork) {
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::zeros({1}));
    EXPECT_TRUE(work->wait());
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    if (rank == 0) launched[0]->on_failed(device_error());
    exec::this_rank::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(work->isCompleted());
    EXPECT_FALSE(work->isSuccess());
    EXPECT_NE(work->exception(), nullptr);
    const auto next = allreduce(group, at::zeros({1}));  // uses the slot of the failed call
    EXPECT_TRUE(next->wait());
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(Devices, WaitForPendingWorks_WaitsForTheDevice) {
  const auto outcome = run(2, [this](int rank, const ProcessGroup& group) {
    const auto work = allreduce(group, at::zeros({1}));
    work->wait();
    if (rank == 0) {
      group->getDefaultBackend()->waitForPendingWorks();
      EXPECT_EQ(exec::this_rank::now(), VirtualTime{} + std::chrono::milliseconds(3));
    } else {
      exec::this_rank::sleep_for(std::chrono::milliseconds(3));
      finish(0);
    }
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

TEST_F(CommTest, Fabric_LearnsWhetherTheCallerWaitsAtOnce) {
  std::vector<bool> async;
  ON_CALL(fabric, prepare).WillByDefault([&async](const Operation& call, const GroupIdentity&, int) {
    async.push_back(call.async_op);
  });
  const auto outcome = run(1, [](int, const ProcessGroup& group) {
    std::vector<at::Tensor> tensors{at::zeros({1})};
    c10d::AllreduceOptions options;
    for (const bool async_op : {true, false}) {
      options.asyncOp = async_op;
      group->allreduce(tensors, options)->wait();
    }
    group->barrier()->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(async, ElementsAre(true, false, true));
}

TEST_F(CommTest, Fabric_LearnsOfGroups) {
  std::vector<std::string> told;
  const auto note = [&told](const std::string& what, const GroupIdentity& group) {
    told.push_back(what + " " + group.name);
  };
  ON_CALL(fabric, open).WillByDefault([&](const GroupIdentity& group, const GroupIdentity* parent) {
    note(parent != nullptr ? "open, of " + parent->name + "," : "open", group);
  });
  ON_CALL(fabric, close).WillByDefault([&](const GroupIdentity& group) { note("close", group); });
  ON_CALL(fabric, abort).WillByDefault([&](const GroupIdentity& group, int rank) {
    note("abort by " + std::to_string(rank), group);
  });
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    const auto backend = group->getDefaultBackend();
    auto split_options = backend->getBackendOptions();
    split_options->group_name = "half";
    const auto half = backend->split({}, {1}, split_options);
    if (rank == 1) half->abort();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
  EXPECT_THAT(told, ElementsAre("open world", "open, of world, half", "abort by 0 half", "close world", "close half"));
}

TEST_F(CommTest, Groups_TakeCallsForTheFabricsDevices) {
  ON_CALL(fabric, device_types).WillByDefault([] {
    static constexpr c10::DeviceType types[]{c10::kCPU, c10::kCUDA};
    return std::span<const c10::DeviceType>(types);
  });
  const auto outcome = run(1, [](int, const ProcessGroup& group) {
    EXPECT_EQ(group->getBackend(c10::kCUDA), group->getBackend(c10::kCPU));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

}  // namespace
}  // namespace rehearse::comm
