// SPDX-License-Identifier: BSD-3-Clause
#include "memory_meter.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "counting_allocator.h"
#include "schedule/units.h"

namespace rehearse::sim {

MemoryMeter::MemoryMeter(int ranks, std::uint64_t limit, bool call_sites)
    : limit_(limit), call_sites_(call_sites), accounts_(static_cast<std::size_t>(ranks)) {
  begin_counting(*this);
}

MemoryMeter::~MemoryMeter() { end_counting(*this); }

void MemoryMeter::fail_next(int rank, std::uint64_t bytes, std::function<void(std::uint64_t)> then) {
  accounts_[static_cast<std::size_t>(rank)].failure = {bytes, std::move(then)};
}

void MemoryMeter::begin_again(int rank) { forget_taken(*this, rank); }

std::size_t MemoryMeter::site_here() {
  auto here = call_sites_ ? exec::CallSite::capture() : exec::CallSite();
  const auto [entry, is_new] = site_numbers_.try_emplace(std::move(here), sites_.size());
  if (is_new) sites_.push_back(entry->first);
  return entry->second;
}

std::size_t MemoryMeter::take(int rank, std::uint64_t bytes) {
  auto& account = accounts_[static_cast<std::size_t>(rank)];
  if (account.failure && bytes >= account.failure->bytes) {
    const auto failure = *std::exchange(account.failure, std::nullopt);
    failure.then(bytes);
    C10_THROW_ERROR(OutOfMemoryError, fmt::format("out of memory: an injected failure of an allocation of {}",
                                                  units::about_bytes(bytes)));
  }
  if (limit_ > 0 && bytes > limit_ - account.taken) {
    C10_THROW_ERROR(
        OutOfMemoryError,
        fmt::format("out of memory: an allocation of {} does not fit, with {} of {} in use", units::about_bytes(bytes),
                    units::about_bytes(account.taken), units::print_bytes(limit_)));
  }
  const auto site = site_here();
  account.by_site.resize(sites_.size());
  account.by_site[site] += bytes;
  account.taken += bytes;
  if (account.taken > account.most) {
    account.most = account.taken;
    account.at_most_is_now = true;
  }
  return site;
}

void MemoryMeter::give_back(int rank, std::uint64_t bytes, std::size_t site) noexcept {
  auto& account = accounts_[static_cast<std::size_t>(rank)];
  if (std::exchange(account.at_most_is_now, false)) account.at_most = account.by_site;
  account.by_site[site] -= bytes;
  account.taken -= bytes;
}

std::vector<RankMemory> MemoryMeter::uses() const {
  std::vector<RankMemory> uses;
  for (const auto& account : accounts_) {
    RankMemory use{static_cast<int>(uses.size()), account.most, {}};
    const auto& by_site = account.at_most_is_now ? account.by_site : account.at_most;
    for (std::size_t site = 0; site < by_site.size(); ++site) {
      if (by_site[site] > 0) use.taken.push_back({by_site[site], sites_[site]});
    }
    std::stable_sort(use.taken.begin(), use.taken.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace rehearse::sim
