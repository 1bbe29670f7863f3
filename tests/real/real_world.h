// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <rehearse_internal/fakes/cost_model.h>
#include <rehearse_internal/fakes/fake_fabric.h>

#include "core/comm/test_world.h"
#include "fabric/nccl_fabric.h"
#include "fake_cuda.h"
#include "mock_nccl.h"

namespace rehearse::real {

constexpr auto kTick = std::chrono::milliseconds(1);

// Process groups over NcclFabric and FakeFabric, with tensors on FakeCuda's devices, one per rank, or in host memory.
// Time is virtual. While any operation is in flight, the world polls the devices at every microsecond of virtual time.
class RealWorld : public ::testing::Test {
 protected:
  using Body = std::function<void(int rank, const comm::ProcessGroup& group)>;

  RealWorld() {
    FakeCuda::instance().reset(8);
    communication.register_groups = false;  // all ranks share one registry here
  }

  // Threads that make or abort communicators may hold `nccl` a little longer than their world lives.
  ~RealWorld() override {
    for (int naps = 0; naps < 10'000 && nccl.use_count() > 1; ++naps) std::this_thread::sleep_for(kTick);
    EXPECT_EQ(nccl.use_count(), 1) << "a thread that nobody waits for does not end";
  }

  exec::RunOutcome run(int ranks, const Body& body);

  // The text of the first rank that failed; empty if none did.
  static std::string failure(const exec::RunOutcome& outcome) {
    return outcome.failures.empty() ? "" : outcome.failures.front().what;
  }

  std::shared_ptr<::testing::NiceMock<MockNccl>> nccl = std::make_shared<::testing::NiceMock<MockNccl>>();
  comm::CommunicatorOptions communication;
  NcclFabricOptions devices;                     // rank i uses device i unless a test names others
  std::vector<comm::PendingOperation> pending;   // of the last world
  comm::Communicators* communicators = nullptr;  // non-null while a world runs
};

}  // namespace rehearse::real
