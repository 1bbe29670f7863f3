// SPDX-License-Identifier: BSD-3-Clause
#include "counting_allocator.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/core/CPUAllocator.h>

#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "memory_meter.h"

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

  void add(MemoryMeter& meter) {
    const std::lock_guard lock(lock_);
    meters_.push_back(&meter);
    if (meters_.size() > 1) return;
    if (below_ == nullptr) below_ = c10::GetCPUAllocator();
    if (below_->raw_deleter() != nullptr) c10::SetCPUAllocator(this);
  }

  void remove(MemoryMeter& meter) noexcept {
    const std::lock_guard lock(lock_);
    std::erase(meters_, &meter);
    for (auto& [data, taken] : taken_) {
      if (taken.meter == &meter) taken.meter = nullptr;
    }
    if (meters_.empty() && c10::GetCPUAllocator() == this) c10::SetCPUAllocator(below_);
  }

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

void begin_counting(MemoryMeter& meter) { CountingAllocator::the_one().add(meter); }

void forget_taken(MemoryMeter& meter, int rank) noexcept { CountingAllocator::the_one().forget(meter, rank); }

void end_counting(MemoryMeter& meter) noexcept { CountingAllocator::the_one().remove(meter); }

}  // namespace rehearse::sim
