// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rehearse_internal/exec/check.h>

namespace rehearse::exec {

// The ids of the runnable fibers. New ones join at the end. Taking the first keeps the order of the others; taking
// another one moves the first into its place. Thus every take is O(1), and an oracle that always answers 0 schedules
// round robin.
class RunQueue {
 public:
  void push(std::uint32_t fiber) { ids_.push_back(fiber); }

  // Removes what was pushed last, if no take() came since.
  void pop() noexcept { ids_.pop_back(); }

  std::uint32_t take(std::size_t index) noexcept {
    const auto taken = ids_[head_ + index];
    ids_[head_ + index] = ids_[head_];
    ++head_;
    if (head_ == ids_.size()) {
      ids_.clear();
      head_ = 0;
    } else if (head_ >= kCompactAt && 2 * head_ >= ids_.size()) {
      ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return taken;
  }

  std::span<const std::uint32_t> candidates() const noexcept { return {ids_.data() + head_, ids_.size() - head_}; }
  // The fiber must be in the queue.
  std::size_t index_of(std::uint32_t fiber) const noexcept {
    const auto index = static_cast<std::size_t>(std::ranges::find(candidates(), fiber) - candidates().begin());
    REHEARSE_CHECK(index < size(), fiber, size());
    return index;
  }
  std::size_t size() const noexcept { return ids_.size() - head_; }
  bool empty() const noexcept { return head_ == ids_.size(); }

 private:
  static constexpr std::size_t kCompactAt = 1024;
  std::vector<std::uint32_t> ids_;
  std::size_t head_ = 0;
};

}  // namespace rehearse::exec
