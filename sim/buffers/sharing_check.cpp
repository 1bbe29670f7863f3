// SPDX-License-Identifier: BSD-3-Clause
#include "sharing_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

// One rank's end of it.
struct End {
  int rank;
  bool writes;
  std::string call;

  std::string text() const { return fmt::format("rank {} {} it in {}", rank, writes ? "writes" : "reads", call); }
};

std::string of_both(const End& one, const End& other) {
  if (other.rank < one.rank) return of_both(other, one);
  return fmt::format("ranks {} and {} use the same memory, which processes do not share: {}, and {}", one.rank,
                     other.rank, one.text(), other.text());
}

}  // namespace

// The entry that begins at `address`.
auto SharingCheck::split_at(const std::byte* address) -> decltype(under_way_)::iterator {
  const auto behind = under_way_.upper_bound(address);
  if (behind == under_way_.begin()) return under_way_.emplace_hint(behind, address, std::vector<const WatchedCall*>());
  const auto at = std::prev(behind);
  return at->first == address ? at : under_way_.emplace_hint(behind, address, at->second);
}

void SharingCheck::begin(WatchedCall& call, const CallsOfRank&) {
  for (const auto& buffer : call.buffers) {
    const auto& [from, to] = buffer.footprint.bounds();
    const auto first = split_at(from), last = split_at(to);
    for (auto place = first; place != last; ++place) {
      for (const auto* const other : place->second) {
        if (other->rank == call.rank) continue;
        for (const auto& other_buffer : other->buffers) compare(buffer, call, other_buffer, *other);
      }
      if (place->second.empty() || place->second.back() != &call) place->second.push_back(&call);
    }
    compare_with_past(buffer, call);
  }
}

void SharingCheck::compare(const WatchedBuffer& buffer, const WatchedCall& call, const WatchedBuffer& other_buffer,
                           const WatchedCall& other) {
  if (!buffer.writes() && !other_buffer.writes()) return;
  if (!overlap(buffer.footprint, other_buffer.footprint) || !other_buffer.is_there()) return;
  finding_.stop_here(
      of_both({call.rank, buffer.writes(), describe(call)}, {other.rank, other_buffer.writes(), describe(other)}));
}

void SharingCheck::compare_with_past(const WatchedBuffer& buffer, const WatchedCall& call) {
  if (storages_.size() >= storages_most_) drop_freed_storages();
  auto& use = storages_.try_emplace(buffer.storage._unsafe_get_target(), StorageUse{buffer.storage, {}}).first->second;
  Past* own = nullptr;
  for (auto& past : use.past) {
    if (past.rank == call.rank && past.writes == buffer.writes()) own = &past;
    if (past.rank == call.rank || (!past.writes && !buffer.writes())) continue;
    if (!overlap(past.footprint, buffer.footprint)) continue;
    finding_.stop_here(of_both({call.rank, buffer.writes(), describe(call)}, {past.rank, past.writes, past.call}));
  }
  if (own == nullptr) own = &use.past.emplace_back();
  *own = {call.rank, buffer.writes(), buffer.footprint, describe(call)};
}

void SharingCheck::drop_freed_storages() {
  std::erase_if(storages_, [](const auto& entry) { return entry.second.storage.expired(); });
  storages_most_ = std::max<std::size_t>(1'024, 2 * storages_.size());
}

void SharingCheck::forget(const WatchedCall& call) noexcept {
  for (const auto& buffer : call.buffers) {
    const auto& [from, to] = buffer.footprint.bounds();
    auto place = under_way_.lower_bound(from);
    while (place != under_way_.end() && place->first < to) {
      std::erase(place->second, &call);
      const bool alike =
          place != under_way_.begin() ? std::prev(place)->second == place->second : place->second.empty();
      place = alike ? under_way_.erase(place) : std::next(place);
    }
    // What ends there may go on as what lies before.
    if (place == under_way_.end() || place->first != to) continue;
    const bool alike = place != under_way_.begin() ? std::prev(place)->second == place->second : place->second.empty();
    if (alike) under_way_.erase(place);
  }
}

}  // namespace rehearse::sim
