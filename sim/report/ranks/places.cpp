// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/places.h"

#include <algorithm>

namespace rehearse::sim {
namespace {

constexpr std::size_t kCallersShown = 2;

using PlaceLines = Places::Lines;

bool same_at(const PlaceLines& a, const PlaceLines& b, std::size_t depth) {
  return depth < a.size() && depth < b.size() && a[depth] == b[depth];
}

}  // namespace

Places::Places(const RunRecord& record) {
  for (const auto& site : record.events.call_sites()) add(site);
  for (const auto& fiber : record.outcome.blocked) add(fiber.where);
  for (const auto& failure : record.outcome.failures) add(failure.thrown_at);
  for (const auto& group : record.pending_groups) add(group.where);
  for (const auto& groups : record.unused_groups) add(groups.where);
  for (const auto& calls : record.unwaited) add(calls.where);
  for (const auto& messages : record.short_messages) add(messages.where);
  for (const auto& thread : record.static_threads) add(thread.where);
  for (const auto& use : record.memory) {
    for (const auto& taken : use.taken) add(taken.where);
  }
  for (const auto& mismatch : record.mismatches) {
    add(mismatch.first.where);
    add(mismatch.second.where);
    for (const auto& side : mismatch.others) add(side.where);
  }
}

void Places::add(const exec::CallSite& site) {
  if (site.empty() || lines_.contains(site)) return;
  const auto& known = lines(site);
  if (!known.empty()) by_innermost_[known.front().text].push_back(&known);
}

const PlaceLines& Places::lines(const exec::CallSite& site) const {
  const auto [entry, is_new] = lines_.try_emplace(site);
  if (is_new) entry->second = site.user_places();
  return entry->second;
}

Place Places::place(const exec::CallSite& site) const {
  const auto& own = lines(site);
  if (own.empty()) return {};
  Place place = own.front();
  const auto known = by_innermost_.find(own.front().text);
  if (known == by_innermost_.end()) return place;
  auto ways = known->second;
  std::size_t shown = 0;
  for (std::size_t depth = 1; depth < own.size() && ways.size() > 1 && shown < kCallersShown; ++depth) {
    const auto elsewhere = [&](const PlaceLines* way) { return !same_at(*way, own, depth); };
    if (std::erase_if(ways, elsewhere) == 0) continue;
    place.text += ", from " + own[depth].text;
    ++shown;
  }
  return place;
}

}  // namespace rehearse::sim
