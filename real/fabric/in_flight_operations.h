// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <rehearse_internal/exec/clock.h>

#include "group_comms.h"
#include "in_flight_operation.h"
#include "nccl/nccl_api.h"

namespace rehearse::real {

// The transfers that are ready to be launched, and those under way. If one fails, its whole group fails: the group's
// communicators are aborted, and all its operations, ready or under way, report the failure.
class InFlightOperations {
 public:
  // `init_limit`: the time limit for making a group's communicators.
  InFlightOperations(std::shared_ptr<NcclApi> nccl, exec::Clock& clock, std::chrono::milliseconds init_limit);

  void add(InFlightOperation operation) { ready_.push_back(std::move(operation)); }

  // Launches everything that is ready. Returns true if anything was ready.
  bool launch_ready() noexcept;

  // Asks the devices, and reports what has ended or failed. Returns true if it reported anything.
  bool tell_ended() noexcept;

  // Ends all transfers of the group and reports the failure to them.
  void fail(GroupComms& comms, const std::exception_ptr& why) noexcept;

  // Forgets the transfer that would report to `completion`. If the transfer is in flight, waits until the devices have
  // finished it, but at most for `limit`. If they have not finished it by then, aborts the transfer's group.
  void cancel(const comm::Completion& completion, std::chrono::milliseconds limit) noexcept;

  bool empty() const noexcept { return ready_.empty() && launched_.empty(); }

 private:
  std::vector<GroupComms*> groups_ready() const;
  void require_comms() noexcept;
  void give_to_nccl(std::deque<InFlightOperation>& operations);
  std::size_t give_together(const std::deque<InFlightOperation>& operations, std::size_t from);
  void require_well(const InFlightOperation& operation, bool look_behind) const;
  std::vector<InFlightOperation> take(const GroupComms& comms);

  const std::shared_ptr<NcclApi> nccl_;
  exec::Clock& clock_;
  const std::chrono::milliseconds init_limit_;
  std::deque<InFlightOperation> ready_;
  std::deque<InFlightOperation> launched_;  // in order of launch
  std::uint64_t polls_ = 0;
};

}  // namespace rehearse::real
