// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <boost/context/stack_context.hpp>

namespace rehearse::exec {

// Stacks for fibers: mapped lazily, each above a guard page, and kept for the next fiber when one ends (a world costs
// no map calls once the pool is warm). Touched pages of a kept stack stay with the process; trim() gives them back.
//
// One pool a thread and stack size; not thread safe.
class StackPool {
 public:
  explicit StackPool(std::size_t stack_bytes);
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // Throws std::system_error naming the limit to look at when the kernel refuses another map.
  boost::context::stack_context take();
  void give_back(const boost::context::stack_context& stack) noexcept;

  // Unmaps the stacks that nobody uses beyond the first `keep`.
  void trim(std::size_t keep) noexcept;

  std::size_t stack_bytes() const noexcept { return stack_bytes_; }

  // Is `address` in the guard page of one of this pool's stacks? Async-signal-safe.
  static bool in_guard_page(const boost::context::stack_context& stack, const void* address) noexcept;

 private:
  void unmap(const boost::context::stack_context& stack) noexcept;

  std::size_t stack_bytes_;
  std::size_t stacks_made_ = 0;
  std::vector<boost::context::stack_context> free_;
};

}  // namespace rehearse::exec
