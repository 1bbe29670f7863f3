// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::exec::interpose {

// The value that we write where libc keeps the thread id of a lock's owner: the world and the fiber. Always negative,
// so it is never a thread id. No two living worlds have the same number.
class OwnerTags {
 public:
  OwnerTags();
  OwnerTags(const OwnerTags&) = delete;
  OwnerTags& operator=(const OwnerTags&) = delete;
  ~OwnerTags();

  // The value of Fiber::owner_tag.
  std::int32_t of(std::uint32_t fiber_id) const noexcept {
    return base_ | static_cast<std::int32_t>(fiber_id & kFiberMask);
  }

  enum class Holder { nobody, other_thread, this_thread, this_world, ended_world };
  Holder classify(std::int32_t owner) const noexcept;

  // The owner must belong to this world.
  static std::uint32_t fiber_id(std::int32_t owner) noexcept { return static_cast<std::uint32_t>(owner) & kFiberMask; }

  std::int32_t thread_id() const noexcept { return thread_id_; }

 private:
  static constexpr unsigned kFiberBits = 20;
  static constexpr std::uint32_t kFiberMask = (std::uint32_t{1} << kFiberBits) - 1;

  std::int32_t base_;
  std::int32_t thread_id_;
};

}  // namespace rehearse::exec::interpose
