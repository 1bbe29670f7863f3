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

// The transfers that are ready to be launched, and those under way. What fails, fails for its group: its communicators
// are aborted, and all that is ready or under way on them is told.
class InFlightOperations {
 public:
  // `init_limit`: for the making of a group's communicators.
  InFlightOperations(std::shared_ptr<NcclApi> nccl, exec::Clock& clock, std::chrono::milliseconds init_limit);

  void add(InFlightOperation operation) { ready_.push_back(std::move(operation)); }

  // Launches all that is ready, in one group of NCCL's. Returns whether there was anything.
  bool launch_ready() noexcept;

  // Tells of what is over, and of what has failed since. Returns whether there was anything.
  bool tell_ended() noexcept;

  // The group's transfers end here, and are told so.
  void fail(GroupComms& comms, const std::exception_ptr& why) noexcept;

  // Forgets the transfer of `told`; where it is under way, when the devices have come past it. Where they have not
  // within `limit`, its group is aborted.
  void cancel(const comm::Completion& told, std::chrono::milliseconds limit) noexcept;

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
  std::uint64_t looks_ = 0;
};

}  // namespace rehearse::real
