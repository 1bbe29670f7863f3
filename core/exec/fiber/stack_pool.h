// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <boost/context/stack_context.hpp>

namespace rehearse::exec {

// Stacks for fibers, each above guard pages. The kernel allocates their pages when they are touched. When a fiber ends,
// the pool keeps its stack for the next fiber, so a world needs no map calls once the pool is warm. Touched pages of a
// kept stack stay allocated until trim().
//
// One pool per thread and stack size; not thread safe.
class StackPool {
 public:
  explicit StackPool(std::size_t stack_bytes);
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // Throws std::system_error if the kernel refuses another map. The text names the limit to raise, if it is known.
  boost::context::stack_context take();
  void give_back(const boost::context::stack_context& stack) noexcept;

  // Unmaps unused stacks, except the first `keep`.
  void trim(std::size_t keep) noexcept;

  std::size_t stack_bytes() const noexcept { return stack_bytes_; }

  // Gives back the memory of a stack that was taken, but not its addresses: every use of them faults from now on.
  static void seal(const boost::context::stack_context& stack) noexcept;

  // Whether `address` is in the guard pages of the stack. Async-signal-safe.
  static bool in_guard_page(const boost::context::stack_context& stack, const void* address) noexcept;

 private:
  void unmap(const boost::context::stack_context& stack) noexcept;

  std::size_t stack_bytes_;
  std::size_t stacks_made_ = 0;
  std::vector<boost::context::stack_context> free_;
};

// The stacks of fibers that will never run again and were not unwound. Seals them when it is destroyed, which must be
// after everything else of their world. No pool may have such a stack again: if a global of the program still refers to
// an object there, it must not read or write the frames of another fiber.
struct LostStacks {
  ~LostStacks();
  std::vector<boost::context::stack_context> stacks;
};

}  // namespace rehearse::exec
