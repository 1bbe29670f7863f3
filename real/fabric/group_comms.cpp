// SPDX-License-Identifier: BSD-3-Clause
#include "group_comms.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <rehearse/comm/errors.h>

#include "nccl/nccl_error.h"

namespace rehearse::real {
namespace {

c10::Device device(int index) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)}; }

void require_own_devices(const comm::GroupIdentity& group, const std::vector<int>& devices) {
  std::set<int> seen;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (seen.insert(devices[rank]).second) continue;
    throw CommError(
        fmt::format("rank {} of group \"{}\" shares device {} with another rank; NCCL wants a device for each "
                    "rank, so run with as many ranks as there are devices, or fewer",
                    group.ranks[rank], group.name, devices[rank]),
        group.name, 0, {group.ranks[rank]});
  }
}

// How to make the communicators. Refers to no object of the caller, because the thread that makes the communicators may
// outlive the caller.
struct Plan {
  struct OfParent {
    ncclComm_t comm;
    int device;
    int own_rank;  // in the new group; -1: not a member
  };

  std::shared_ptr<NcclApi> nccl;
  std::vector<int> devices;
  std::vector<OfParent> parent;              // empty: make them without a parent
  std::shared_ptr<const void> keeps_parent;  // the owner of the parent's communicators

  std::vector<ncclComm_t> carry_out() const { return parent.empty() ? make() : split(); }

 private:
  std::vector<ncclComm_t> make() const;
  std::vector<ncclComm_t> split() const;
};

std::vector<ncclComm_t> Plan::make() const {
  ncclUniqueId id{};
  require_success(*nccl, "ncclGetUniqueId", nccl->get_unique_id(&id));
  std::vector<ncclComm_t> made(devices.size(), nullptr);
  NcclGroup together(*nccl);
  for (std::size_t rank = 0; rank < made.size(); ++rank) {
    const c10::DeviceGuard on(device(devices[rank]));
    require_success(*nccl, "ncclCommInitRank",
                    nccl->comm_init_rank(&made[rank], static_cast<int>(made.size()), id, static_cast<int>(rank)));
  }
  together.end();
  return made;
}

std::vector<ncclComm_t> Plan::split() const {
  std::vector<ncclComm_t> made(devices.size(), nullptr);
  std::vector<ncclComm_t> none(parent.size(), nullptr);
  NcclGroup together(*nccl);
  for (std::size_t rank = 0; rank < parent.size(); ++rank) {
    const auto& from = parent[rank];
    const bool member = from.own_rank >= 0;
    const c10::DeviceGuard on(device(from.device));
    require_success(*nccl, "ncclCommSplit",
                    nccl->comm_split(from.comm, member ? 0 : NCCL_SPLIT_NOCOLOR, member ? from.own_rank : 0,
                                     member ? &made[static_cast<std::size_t>(from.own_rank)] : &none[rank]),
                    from.comm);
  }
  together.end();
  return made;
}

// Shared by the thread that makes the communicators and the caller, who may have stopped waiting for it.
struct Making {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::vector<ncclComm_t> made;
  std::exception_ptr error;

  void carry_out(Plan& plan) noexcept {
    std::vector<ncclComm_t> comms;
    std::exception_ptr failure;
    try {
      comms = plan.carry_out();
    } catch (...) {
      failure = std::current_exception();
    }
    plan.keeps_parent.reset();  // before the caller goes on, so that the parent's end is its own
    const std::lock_guard lock(mutex);
    made = std::move(comms);
    error = failure;
    over = true;
    ended.notify_one();
  }
};

}  // namespace

GroupComms::GroupComms(std::shared_ptr<NcclApi> nccl, const comm::GroupIdentity& group, std::vector<int> devices,
                       GroupComms* parent)
    : nccl_(std::move(nccl)),
      group_(group),
      devices_(std::move(devices)),
      parent_(parent),
      owned_(std::make_shared<Owned>(nccl_)) {}

GroupComms::Owned::~Owned() {
  if (aborted) return;
  for (const auto comm : comms) static_cast<void>(nccl->comm_destroy(comm));
}

void GroupComms::require(std::chrono::milliseconds limit) {
  if (made()) return;
  require_own_devices(group_, devices_);
  Plan plan{nccl_, devices_, {}, nullptr};
  if (parent_ != nullptr && parent_->made() && !parent_->aborted()) {
    plan.keeps_parent = parent_->owned_;
    const auto& all = parent_->group().ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const auto own = std::ranges::find(group_.ranks, all[rank]);
      plan.parent.push_back({parent_->owned_->comms[rank], parent_->devices_[rank],
                             own == group_.ranks.end() ? -1 : static_cast<int>(own - group_.ranks.begin())});
    }
  }
  const auto making = std::make_shared<Making>();
  std::thread([plan = std::move(plan), making]() mutable { making->carry_out(plan); }).detach();
  std::unique_lock lock(making->mutex);
  if (!making->ended.wait_for(lock, limit, [&] { return making->over; })) {
    throw CommError(fmt::format("the communicators of group \"{}\" were not made within {} ms; NCCL_DEBUG=INFO in the "
                                "environment tells what NCCL waits for",
                                group_.name, limit.count()),
                    group_.name, 0, group_.ranks);
  }
  if (making->error != nullptr) std::rethrow_exception(making->error);
  owned_->comms = std::move(making->made);
}

void GroupComms::require_healthy() const {
  if (aborted()) return;
  for (const auto comm : owned_->comms) {
    ncclResult_t behind = ncclSuccess;
    require_success(*nccl_, "ncclCommGetAsyncError", nccl_->comm_get_async_error(comm, &behind), comm);
    if (behind != ncclInProgress) require_success(*nccl_, "a communicator", behind, comm);
  }
}

void GroupComms::abort(std::vector<at::Tensor> under_way) noexcept {
  still_written_->insert(still_written_->end(), under_way.begin(), under_way.end());
  if (std::exchange(owned_->aborted, true)) return;
  for (const auto comm : owned_->comms) {
    std::thread([nccl = nccl_, comm, kept = still_written_] { static_cast<void>(nccl->comm_abort(comm)); }).detach();
  }
}

}  // namespace rehearse::real
