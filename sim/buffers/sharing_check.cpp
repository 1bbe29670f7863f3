// SPDX-License-Identifier: BSD-3-Clause
#include "sharing_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

// How one rank uses the shared memory.
struct End {
  int rank;
  bool writes;
  std::string call;

  std::string text() const { return fmt::format("rank {} {} it in {}", rank, writes ? "writes" : "reads", call); }
};

[[noreturn]] void stop(Finding& finding, const End& one, const End& other) {
  if (other.rank < one.rank) stop(finding, other, one);
  finding.stop_here({one.rank, other.rank},
                    fmt::format("ranks {} and {} use the same memory, which processes do not share: {}, and {}",
                                one.rank, other.rank, one.text(), other.text()));
}

}  // namespace

void SharingCheck::begin(WatchedCall& call, const std::vector<SharedBytes>& shared) {
  auto next = shared.begin();
  for (const auto& buffer : call.buffers) {
    for (; next != shared.end() && next->buffer == &buffer; ++next) {
      const auto& other = *next->earlier;
      if (other.call->rank == call.rank) continue;
      stop(finding_, {call.rank, buffer.writes(), describe(call.title, call.where)},
           {other.call->rank, other.writes(), describe(other.call->title, other.call->where)});
    }
    compare_with_past(buffer, call);
  }
}

void SharingCheck::compare_with_past(const WatchedBuffer& buffer, const WatchedCall& call) {
  const auto use = by_storage_.find(buffer.storage._unsafe_get_target());
  if (use == by_storage_.end()) return;
  for (const auto& past : use->second->past) {
    if (past.rank == call.rank || (!past.writes && !buffer.writes())) continue;
    if (!overlap(past.footprint, buffer.footprint)) continue;
    stop(finding_, {call.rank, buffer.writes(), describe(call.title, call.where)},
         {past.rank, past.writes, describe(past.call, past.where)});
  }
}

// Notes the uses of the call's buffers, because CallWatch's index no longer holds them. If the call alone holds a
// buffer, the buffer's memory goes away with the call, so no other rank can use that memory.
void SharingCheck::forget(const WatchedCall& call) noexcept {
  for (const auto& buffer : call.buffers) {
    if (!buffer.storage.expired() && !buffer.is_held_by_call_alone()) note(buffer, call);
  }
}

void SharingCheck::note(const WatchedBuffer& buffer, const WatchedCall& call) {
  if (uses_.size() >= uses_most_) drop_freed_storages();
  auto& use = by_storage_[buffer.storage._unsafe_get_target()];
  if (use == nullptr) use = &uses_.emplace_back(StorageUse{buffer.storage, {}});
  Past latest{call.rank, buffer.writes(), buffer.footprint, call.title, call.where};
  const auto own = std::ranges::find_if(
      use->past, [&](const Past& past) { return past.rank == latest.rank && past.writes == latest.writes; });
  if (own != use->past.end()) {
    *own = std::move(latest);
  } else {
    use->past.push_back(std::move(latest));
  }
}

void SharingCheck::drop_freed_storages() {
  uses_.remove_if([this](const StorageUse& use) {
    if (!use.storage.expired()) return false;
    by_storage_.erase(use.storage._unsafe_get_target());
    return true;
  });
  uses_most_ = std::max<std::size_t>(1'024, 2 * uses_.size());
}

}  // namespace rehearse::sim
