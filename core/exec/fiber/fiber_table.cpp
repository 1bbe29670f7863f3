// SPDX-License-Identifier: BSD-3-Clause
#include "fiber_table.h"

#include <utility>

namespace rehearse::exec {
namespace {

constexpr std::size_t kFurtherFibers = 16;

}  // namespace

FiberTable::~FiberTable() {
  for (Fiber* const fiber : fibers_) fiber->~Fiber();
}

void FiberTable::prepare(std::size_t image_bytes, std::size_t first) {
  constexpr auto alignment = static_cast<std::size_t>(kAlignment);
  bytes_of_each_ = (sizeof(Fiber) + image_bytes + alignment - 1) / alignment * alignment;
  next_block_ = first;
  fibers_.reserve(first);
}

std::byte* FiberTable::room() {
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

}  // namespace rehearse::exec
