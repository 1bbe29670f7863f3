// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <rehearse_internal/comm/group_identity.h>

#include "nccl/nccl_api.h"

namespace rehearse::real {

// NCCL's communicators of one group, one for each of its ranks, all of which are in this process. They are made when
// the group first needs them, since a group that moves nothing on devices needs none.
//
// Not thread safe.
class GroupComms {
 public:
  // `devices`: of each rank of the group. `parent`: the group from which this one was split, which then lends NCCL what
  // it has; null: none. It outlives this, as `group` does.
  GroupComms(std::shared_ptr<NcclApi> nccl, const comm::GroupIdentity& group, std::vector<int> devices,
             GroupComms* parent);
  GroupComms(const GroupComms&) = delete;
  GroupComms& operator=(const GroupComms&) = delete;
  ~GroupComms();

  // Makes them, where they are not there yet. Blocks this thread, at most for `limit`. Throws NcclError, and CommError
  // where the limit has come: NCCL is then left to itself on a thread of its own.
  void require(std::chrono::milliseconds limit);

  bool made() const noexcept { return !comms_.empty(); }
  bool aborted() const noexcept { return aborted_; }
  ncclComm_t of(int rank) const { return comms_.at(static_cast<std::size_t>(rank)); }
  int device_of(int rank) const { return devices_.at(static_cast<std::size_t>(rank)); }
  const comm::GroupIdentity& group() const noexcept { return group_; }

  // Throws NcclError when a communicator has failed behind the host's back.
  void require_healthy() const;

  // Ends what is under way. NCCL takes as long for it as the devices do, so it is done on threads that nobody waits
  // for; they keep what a device may still write. May be called again, with more of that.
  void abort(std::vector<at::Tensor> under_way) noexcept;

 private:
  const std::shared_ptr<NcclApi> nccl_;
  const comm::GroupIdentity& group_;
  const std::vector<int> devices_;
  GroupComms* const parent_;
  std::vector<ncclComm_t> comms_;
  bool aborted_ = false;
  // Shared with the threads that abort; they only let go of it.
  const std::shared_ptr<std::vector<at::Tensor>> still_written_ = std::make_shared<std::vector<at::Tensor>>();
};

}  // namespace rehearse::real
