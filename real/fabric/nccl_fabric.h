// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/exec/clock.h>

#include "device_work.h"
#include "group_comms.h"
#include "in_flight_operations.h"
#include "nccl/nccl_api.h"

namespace rehearse::real {

struct NcclFabricOptions {
  std::vector<int> devices;                                        // of each rank of the world
  std::chrono::milliseconds init_limit = std::chrono::minutes(5);  // for the making of a group's communicators
  std::chrono::milliseconds end_limit = std::chrono::seconds(1);   // for what is under way when its world ends
  bool timed = false;                                              // calls know how long they took
};

// Moves the bytes of ranks whose tensors lie on GPUs of this process, by NCCL; those on the CPU another fabric moves.
//
// A transfer, whose ranks are all there by then, goes to NCCL in one group with all others that are ready (but those
// whose memory it shares): at once when it is large or somebody waits for it, with the next poll() otherwise.
// Asynchronous calls run on a stream of their group's beside the caller's, synchronous ones on the caller's own. A
// transfer is *launched* when NCCL has taken it, and *done* when the devices have come past it; its tensors are kept
// until then, and LibTorch's allocator needs not be told. A barrier is done when each rank's device has come to where
// the rank called it.
//
// Failures: what NCCL or a device refuses, an asynchronous error of a communicator, and a call that was launched and
// not done within its timeout fail all calls of the group that are under way, and abort its communicators: the group
// moves nothing on devices any more. Tensors that a device may still write are kept until NCCL has let go of them.
//
// Blocks: nothing but the making of a group's communicators at its first transfer, cancel() of what is under way (up to
// end_limit), and what NCCL does at the first use of a connection. Threads: that of the ranks. Nothing is noticed but
// in poll(), which is to be called while pending().
class NcclFabric final : public comm::Fabric, public DeviceWork {
 public:
  // `host`: for tensors of the CPU. Both references outlive this.
  NcclFabric(std::shared_ptr<NcclApi> nccl, comm::Fabric& host, exec::Clock& clock, NcclFabricOptions options);
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;
  ~NcclFabric() override;

  std::span<const c10::DeviceType> device_types() const noexcept override;
  void open(const comm::GroupIdentity& group, const comm::GroupIdentity* parent) override;
  void close(const comm::GroupIdentity& group) noexcept override;
  void abort(const comm::GroupIdentity& group, int rank) noexcept override;

  // Throws c10::Error with PyTorch's texts, and CommError for a group that was aborted.
  void prepare(comm::Operation& call, const comm::GroupIdentity& group, int rank) override;

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

  bool poll() noexcept override;
  bool pending() const noexcept override { return !in_flight_.empty(); }

 private:
  c10::Stream stream_beside(const comm::GroupIdentity& group, int rank, c10::Device device);
  c10::Device device_of(int global_rank) const;
  GroupComms& comms_of(const comm::GroupIdentity& group) { return *groups_.at(group.id); }

  const std::shared_ptr<NcclApi> nccl_;
  comm::Fabric& host_;
  const NcclFabricOptions options_;
  std::map<std::uint32_t, std::unique_ptr<GroupComms>> groups_;   // by the group's id
  std::map<std::pair<std::uint32_t, int>, c10::Stream> streams_;  // by that and the rank in it
  InFlightOperations in_flight_;
};

}  // namespace rehearse::real
