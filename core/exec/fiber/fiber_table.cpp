// SPDX-License-Identifier: BSD-3-Clause
#include "fiber_table.h"

#include <utility>

#include <rehearse_internal/exec/check.h>

namespace rehearse::exec {
namespace {

constexpr std::size_t kFurtherFibers = 16;

}  // namespace

void wrong_state(const Fiber& fiber, Fiber::State wanted, const char* in) noexcept {
  REHEARSE_CHECK(fiber.state == wanted, in, fiber.rank, fiber.id, fiber.state, wanted);
  __builtin_unreachable();
}

FiberTable::~FiberTable() {
  for (Fiber* const fiber : fibers_) fiber->~Fiber();
  if (!left_behind_ || !looks_for_leaks()) return;
  for (auto& block : blocks_) keep_reachable(block.release());
}

void FiberTable::prepare(std::size_t image_bytes, std::size_t first) {
  REHEARSE_CHECK(bytes_of_each_ == 0 && fibers_.empty(), bytes_of_each_, fibers_.size());
  constexpr auto alignment = static_cast<std::size_t>(kAlignment);
  bytes_of_each_ = (sizeof(Fiber) + image_bytes + alignment - 1) / alignment * alignment;
  next_block_ = first;
  fibers_.reserve(first);
}

std::byte* FiberTable::room() {
  REHEARSE_CHECK(bytes_of_each_ != 0, fibers_.size());
  if (left_ == 0) {
    void* const block = ::operator new(next_block_ * bytes_of_each_, kAlignment);
    next_ = blocks_.emplace_back(static_cast<std::byte*>(block)).get();
    left_ = std::exchange(next_block_, kFurtherFibers);
  }
  --left_;
  return std::exchange(next_, next_ + bytes_of_each_);
}

Fiber& FiberTable::add() {
  if (free_ids_.empty()) {
    fibers_.push_back(new (room()) Fiber);
    fibers_.back()->id = static_cast<std::uint32_t>(fibers_.size() - 1);
    return *fibers_.back();
  }
  const std::uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  Fiber* const former = fibers_[id];
  former->~Fiber();
  Fiber* const made = fibers_[id] = new (former) Fiber;
  made->id = id;
  return *made;
}

void FiberTable::give_back(std::uint32_t id) {
  REHEARSE_CHECK(id < fibers_.size() && free_ids_.size() < fibers_.size(), id, fibers_.size(), free_ids_.size());
  REHEARSE_CHECK(!fibers_[id]->active(), id, fibers_[id]->rank, fibers_[id]->state);
  free_ids_.push_back(id);
}

}  // namespace rehearse::exec
