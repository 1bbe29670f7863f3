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

// Process groups whose tensors lie on FakeCuda's devices, one a rank, or in the host's memory; over NcclFabric and
// FakeFabric. Time is virtual; devices are looked at every microsecond of it.
class RealWorld : public ::testing::Test {
 protected:
  using Body = std::function<void(int rank, const comm::ProcessGroup& group)>;

  RealWorld() {
    FakeCuda::instance().reset(8);
    communication.register_groups = false;  // all ranks share one registry here
  }

  // Threads that make communicators, or abort them, may hold it a little longer than their world lives.
  ~RealWorld() override {
    for (int naps = 0; naps < 10'000 && nccl.use_count() > 1; ++naps) std::this_thread::sleep_for(kTick);
    EXPECT_EQ(nccl.use_count(), 1) << "a thread that nobody waits for does not end";
  }

  exec::RunOutcome run(int ranks, const Body& body);

  // The text of the first rank that failed; empty: none did.
  static std::string failure(const exec::RunOutcome& outcome) {
    return outcome.failures.empty() ? "" : outcome.failures.front().what;
  }

  std::shared_ptr<::testing::NiceMock<MockNccl>> nccl = std::make_shared<::testing::NiceMock<MockNccl>>();
  comm::CommunicatorOptions communication;
  NcclFabricOptions devices;                     // of rank i: device i, where none are named
  std::vector<comm::PendingOperation> pending;   // of the last world
  comm::Communicators* communicators = nullptr;  // while it runs
};

}  // namespace rehearse::real
