// SPDX-License-Identifier: BSD-3-Clause
#include "exec/fiber/fiber.h"

#include <atomic>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/exec/interpreter.h>

namespace rehearse::exec {
namespace {

constinit Interpreter* g_interpreter = nullptr;

FiberLocals& locals_of_thread() noexcept {
  thread_local FiberLocals locals;
  return locals;
}

// The fiber whose objects the calling code uses: the running fiber or, on the executor's thread, the fiber in a native
// section. Null for all other code: each thread then uses its own objects. The helper threads of an OpenMP region use
// their own objects, too, because they have no executor.
Fiber* fiber_with_locals() noexcept {
  if (t_current_fiber != nullptr) [[likely]]
    return t_current_fiber;
  return t_native_fiber != nullptr && RankExecutor::current() != nullptr ? t_native_fiber : nullptr;
}

}  // namespace

Interpreter* interpreter() noexcept { return g_interpreter; }
void set_interpreter(Interpreter* interpreter) noexcept { g_interpreter = interpreter; }

struct FiberLocals::Kept {
  struct Made {
    std::size_t slot;
    void (*destroy)(void*) noexcept;
  };

  std::vector<void*> slots;
  std::vector<Made> made;  // in the order of creation
};

void* FiberLocals::find_kept(std::size_t slot) const noexcept {
  return slot < kept_->slots.size() ? kept_->slots[slot] : nullptr;
}

void FiberLocals::keep(std::size_t slot, void* made, void (*destroy)(void*) noexcept) {
  if (kept_ == nullptr) kept_ = new Kept;
  if (kept_->slots.size() <= slot) kept_->slots.resize(slot + 1);
  kept_->made.push_back({slot, destroy});
  kept_->slots[slot] = made;
}

void FiberLocals::clear() noexcept {
  if (kept_ == nullptr) return;
  while (!kept_->made.empty()) {
    const Kept::Made last = kept_->made.back();
    kept_->made.pop_back();
    last.destroy(std::exchange(kept_->slots[last.slot], nullptr));
  }
  delete std::exchange(kept_, nullptr);
}

namespace detail {

std::size_t new_fiber_local_slot() noexcept {
  constinit static std::atomic<std::size_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void* find_fiber_local(std::size_t slot) noexcept {
  const Fiber* const fiber = fiber_with_locals();
  if (fiber == nullptr) return locals_of_thread().find(slot);
  return fiber->locals.find(slot);
}

void keep_fiber_local(std::size_t slot, void* made, void (*destroy)(void*) noexcept) {
  Fiber* const fiber = fiber_with_locals();
  if (fiber == nullptr) return locals_of_thread().keep(slot, made, destroy);
  fiber->locals.keep(slot, made, destroy);
}

}  // namespace detail
}  // namespace rehearse::exec
