// SPDX-License-Identifier: BSD-3-Clause
#include "fiber_locals.h"

#include <atomic>
#include <utility>

#include <rehearse/exec/executor.h>
#include <rehearse/exec/fiber_local.h>

#include "fiber.h"

namespace rehearse::exec {
namespace {

FiberLocals& locals_of_thread() noexcept {
  thread_local FiberLocals locals;
  return locals;
}

// Of the running fiber; in its OpenMP region, for its own thread. A thread that helps it has no executor.
Fiber* fiber_with_locals() noexcept {
  if (t_current_fiber != nullptr) [[likely]]
    return t_current_fiber;
  return t_native_fiber != nullptr && RankExecutor::current() != nullptr ? t_native_fiber : nullptr;
}

}  // namespace

void FiberLocals::keep(std::size_t slot, void* made, void (*destroy)(void*) noexcept) {
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  made_.push_back({slot, destroy});
  slots_[slot] = made;
}

void FiberLocals::clear() noexcept {
  while (!made_.empty()) {
    const Kept last = made_.back();
    made_.pop_back();
    last.destroy(std::exchange(slots_[last.slot], nullptr));
  }
}

namespace detail {

std::size_t new_fiber_local_slot() noexcept {
  constinit static std::atomic<std::size_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void* find_fiber_local(std::size_t slot) noexcept {
  const Fiber* const fiber = fiber_with_locals();
  if (fiber == nullptr) return locals_of_thread().find(slot);
  return fiber->locals != nullptr ? fiber->locals->find(slot) : nullptr;
}

void keep_fiber_local(std::size_t slot, void* made, void (*destroy)(void*) noexcept) {
  Fiber* const fiber = fiber_with_locals();
  if (fiber == nullptr) return locals_of_thread().keep(slot, made, destroy);
  if (fiber->locals == nullptr) fiber->locals = std::make_unique<FiberLocals>();
  fiber->locals->keep(slot, made, destroy);
}

}  // namespace detail
}  // namespace rehearse::exec
