// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <rehearse_internal/comm/group_identity.h>

#include "nccl/nccl_api.h"

namespace rehearse::real {

// NCCL's communicators of one group, one for each rank of the group. All ranks are in this process. The communicators
// are made when the group first needs them, because a group that moves nothing on devices needs none.
//
// Not thread safe.
class GroupComms {
 public:
  // `devices`: one for each rank of the group. `parent`: the group from which this one was split; null: none. If the
  // parent has communicators that were not aborted, NCCL splits them instead of making new ones. `parent` and `group`
  // must outlive this object.
  GroupComms(std::shared_ptr<NcclApi> nccl, const comm::GroupIdentity& group, std::vector<int> devices,
             GroupComms* parent);
  GroupComms(const GroupComms&) = delete;
  GroupComms& operator=(const GroupComms&) = delete;

  // Makes the communicators if they do not exist. Blocks this thread, but at most for `limit`. Throws NcclError, and
  // CommError if two ranks share a device or if the limit is over. After the limit, NCCL still works on the
  // communicators in a thread of its own.
  void require(std::chrono::milliseconds limit);

  bool made() const noexcept { return !owned_->comms.empty(); }
  bool aborted() const noexcept { return owned_->aborted; }
  ncclComm_t of(int rank) const { return owned_->comms.at(static_cast<std::size_t>(rank)); }
  int device_of(int rank) const { return devices_.at(static_cast<std::size_t>(rank)); }
  const comm::GroupIdentity& group() const noexcept { return group_; }

  // Throws NcclError if a communicator has failed asynchronously.
  void require_healthy() const;

  // Aborts what is under way. NCCL may block for as long as a device is busy. So separate threads call NCCL, and nobody
  // waits for them. These threads keep the tensors that a device may still write. You may call abort() again with more
  // such tensors.
  void abort(std::vector<at::Tensor> under_way) noexcept;

 private:
  // Destroys the communicators, unless they were aborted.
  struct Owned {
    explicit Owned(std::shared_ptr<NcclApi> api) : nccl(std::move(api)) {}
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned();

    const std::shared_ptr<NcclApi> nccl;
    std::vector<ncclComm_t> comms;
    bool aborted = false;
  };

  const std::shared_ptr<NcclApi> nccl_;
  const comm::GroupIdentity& group_;
  const std::vector<int> devices_;
  GroupComms* const parent_;
  // Shared with the threads that split the communicators, which may outlive this object.
  const std::shared_ptr<Owned> owned_;
  // Shared with the threads that abort, which only release it.
  const std::shared_ptr<std::vector<at::Tensor>> still_written_ = std::make_shared<std::vector<at::Tensor>>();
};

}  // namespace rehearse::real
