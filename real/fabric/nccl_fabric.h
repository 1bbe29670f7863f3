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
  std::vector<int> devices;                                        // one for each rank of the world
  std::chrono::milliseconds init_limit = std::chrono::minutes(5);  // for making a group's communicators
  std::chrono::milliseconds end_limit = std::chrono::seconds(1);   // for operations under way when their world ends
  bool timed = false;                                              // calls measure how long they took
};

// Moves bytes by NCCL, between ranks whose tensors lie on GPUs of this process.
//
// All ranks of a transfer have arrived when the fabric gets it. The fabric passes a transfer to NCCL at once if it is
// large or if a rank waits for it, and otherwise at the next poll(). All transfers that are ready go into one group of
// NCCL calls, except transfers that share memory. A synchronous call runs on the caller's stream. An asynchronous call
// runs on another stream, which the rank uses for all such calls of the group. A transfer is *launched* when NCCL has
// taken it, and *done* when the devices have finished it. The matcher keeps the tensors until then, so LibTorch's
// allocator needs no notice. A barrier is done when each rank's device has reached the point at which the rank called
// it.
//
// Failures: NCCL or a device refuses a call, a communicator reports an asynchronous error, or a launched call is not
// done within its timeout. Each of these fails all calls of the group that are ready or under way and aborts its
// communicators; the group moves nothing on devices any more. If NCCL refuses a call, all groups whose calls were
// launched together with that call fail in this way. A device may still write to tensors of a failed group. The fabric
// keeps such tensors until NCCL has released them.
//
// Blocking: only the making of a group's communicators at its first transfer, their destruction (close() and the
// destructor), cancel() of a transfer under way (up to end_limit), and what NCCL does at the first use of a connection.
// Threads: call all functions on the thread that runs the ranks. Only poll() notices the end of a transfer, so call it
// while pending(). launch(), poll() and abort() report failures.
class NcclFabric final : public comm::Fabric, public DeviceWork {
 public:
  // `host`: the fabric for CPU tensors. `host` and `clock` must outlive this object.
  NcclFabric(std::shared_ptr<NcclApi> nccl, comm::Fabric& host, exec::Clock& clock, NcclFabricOptions options);
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;
  ~NcclFabric() override;

  std::span<const c10::DeviceType> device_types() const noexcept override;
  void open(const comm::GroupIdentity& group, const comm::GroupIdentity* parent) override;
  void close(const comm::GroupIdentity& group) noexcept override;
  void abort(const comm::GroupIdentity& group, int rank) noexcept override;

  // For calls on devices. Throws c10::Error if NCCL cannot carry out the call (see require_carried()) or if a tensor is
  // not on the rank's device, and CommError for a group that was aborted. `host` prepares all other calls.
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
  std::map<std::uint32_t, std::unique_ptr<GroupComms>> groups_;   // by group id
  std::map<std::pair<std::uint32_t, int>, c10::Stream> streams_;  // by group id and rank in the group
  InFlightOperations in_flight_;
};

}  // namespace rehearse::real
