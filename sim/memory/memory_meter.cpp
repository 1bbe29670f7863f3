// SPDX-License-Identifier: BSD-3-Clause
#include "memory_meter.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "schedule/units.h"

namespace rehearse::sim {
namespace {

struct Taken {
  MemoryMeter* meter;
  int rank;
  std::uint64_t bytes;
  std::size_t site;
};

// Not a mutex: a rank's mutexes are scheduling points, and no fiber may switch while it holds this lock.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

// LibTorch's CPU allocator while the memory of a world is counted. It passes each allocation on to the former
// allocator, and notes which rank made it. Counts allocations in fibers of the world to which a meter is lent
// (exec::WorldLocal<MemoryMeter>), except while operators::are_unseen() is true.
//
// One object for the process, because any thread may free a tensor, also after its world. It is never destroyed,
// because static objects may hold tensors.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (below_ == nullptr || below_->raw_deleter() == nullptr) return fallback().allocate(bytes);
    const bool is_the_ranks = exec::this_rank::is_fiber() && !operators::are_unseen();
    auto* const meter = is_the_ranks ? exec::WorldLocal<MemoryMeter>::find() : nullptr;
    auto memory = meter != nullptr && bytes > 0 ? counted(*meter, bytes) : below_->allocate(bytes);
    const auto device = memory.device();
    void* const data = memory.release_context();
    return {data, data, &release, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Installs the allocator if `meter` is the only one of the process, and if the former allocator has a raw_deleter().
  void add(MemoryMeter& meter) {
    const std::lock_guard lock(lock_);
    meters_.push_back(&meter);
    if (meters_.size() > 1) return;
    if (below_ == nullptr) below_ = c10::GetCPUAllocator();
    if (below_->raw_deleter() != nullptr) c10::SetCPUAllocator(this);
  }

  // Forgets all memory that `meter` counts. The allocator never calls `meter` again, even if somebody frees such
  // memory. Removes the allocator with the last meter.
  void remove(MemoryMeter& meter) noexcept {
    const std::lock_guard lock(lock_);
    std::erase(meters_, &meter);
    for (auto& [data, taken] : taken_) {
      if (taken.meter == &meter) taken.meter = nullptr;
    }
    if (meters_.empty() && c10::GetCPUAllocator() == this) c10::SetCPUAllocator(below_);
  }

  // Subtracts the memory that nobody has freed yet from the rank's account.
  void forget(const MemoryMeter& meter, int rank) noexcept {
    const std::lock_guard lock(lock_);
    for (auto& [data, taken] : taken_) {
      if (taken.meter != &meter || taken.rank != rank) continue;
      std::exchange(taken.meter, nullptr)->give_back(rank, taken.bytes, taken.site);
    }
  }

  void forget(void* data) noexcept {
    const std::lock_guard lock(lock_);
    const auto found = taken_.find(data);
    if (found == taken_.end()) return;
    const auto taken = found->second;
    taken_.erase(found);
    if (taken.meter != nullptr) taken.meter->give_back(taken.rank, taken.bytes, taken.site);
  }

  c10::Allocator& fallback() const { return below_ != nullptr ? *below_ : *c10::GetDefaultCPUAllocator(); }

  static CountingAllocator& the_one() {
    static auto* const allocator = new CountingAllocator;
    return *allocator;
  }

 private:
  c10::DataPtr counted(MemoryMeter& meter, std::size_t bytes) {
    const int rank = exec::this_rank::rank();
    const std::lock_guard lock(lock_);
    const auto site = meter.take(rank, bytes);
    try {
      auto memory = below_->allocate(bytes);
      taken_[memory.get()] = {&meter, rank, bytes, site};
      return memory;
    } catch (...) {
      meter.give_back(rank, bytes, site);  // the machine itself is out of memory
      throw;
    }
  }

  static void release(void* data) {
    auto& allocator = the_one();
    allocator.forget(data);
    allocator.fallback().raw_deallocate(data);
  }

  c10::Allocator* below_ = nullptr;
  SpinLock lock_;
  std::vector<MemoryMeter*> meters_;
  std::unordered_map<void*, Taken> taken_;  // looked up by address; its order never matters
};

}  // namespace

MemoryMeter::MemoryMeter(int ranks, std::uint64_t limit, bool call_sites)
    : limit_(limit), call_sites_(call_sites), accounts_(static_cast<std::size_t>(ranks)) {
  CountingAllocator::the_one().add(*this);
}

MemoryMeter::~MemoryMeter() { CountingAllocator::the_one().remove(*this); }

void MemoryMeter::fail_next(int rank, std::uint64_t bytes, std::function<void(std::uint64_t)> then) {
  accounts_[static_cast<std::size_t>(rank)].failure = {bytes, std::move(then)};
}

void MemoryMeter::begin_again(int rank) { CountingAllocator::the_one().forget(*this, rank); }

std::size_t MemoryMeter::site_here() {
  auto here = call_sites_ ? exec::CallSite::capture() : exec::CallSite();
  const auto [entry, is_new] = site_numbers_.try_emplace(std::move(here), sites_.size());
  if (is_new) sites_.push_back(entry->first);
  return entry->second;
}

std::size_t MemoryMeter::take(int rank, std::uint64_t bytes) {
  auto& account = accounts_[static_cast<std::size_t>(rank)];
  if (account.failure && bytes >= account.failure->bytes) {
    const auto failure = *std::exchange(account.failure, std::nullopt);
    failure.then(bytes);
    C10_THROW_ERROR(OutOfMemoryError, fmt::format("out of memory: an injected failure of an allocation of {}",
                                                  units::about_bytes(bytes)));
  }
  if (limit_ > 0 && bytes > limit_ - account.taken) {
    C10_THROW_ERROR(
        OutOfMemoryError,
        fmt::format("out of memory: an allocation of {} does not fit, with {} of {} in use", units::about_bytes(bytes),
                    units::about_bytes(account.taken), units::print_bytes(limit_)));
  }
  const auto site = site_here();
  account.by_site.resize(sites_.size());
  account.by_site[site] += bytes;
  account.taken += bytes;
  if (account.taken > account.most) {
    account.most = account.taken;
    account.at_most_is_now = true;
  }
  return site;
}

void MemoryMeter::give_back(int rank, std::uint64_t bytes, std::size_t site) noexcept {
  auto& account = accounts_[static_cast<std::size_t>(rank)];
  if (std::exchange(account.at_most_is_now, false)) account.at_most = account.by_site;
  account.by_site[site] -= bytes;
  account.taken -= bytes;
}

std::vector<RankMemory> MemoryMeter::uses() const {
  std::vector<RankMemory> uses;
  for (const auto& account : accounts_) {
    RankMemory use{static_cast<int>(uses.size()), account.most, {}};
    const auto& by_site = account.at_most_is_now ? account.by_site : account.at_most;
    for (std::size_t site = 0; site < by_site.size(); ++site) {
      if (by_site[site] > 0) use.taken.push_back({by_site[site], sites_[site]});
    }
    std::ranges::stable_sort(use.taken, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace rehearse::sim
