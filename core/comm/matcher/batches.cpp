// SPDX-License-Identifier: BSD-3-Clause
#include "batches.h"

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>

#include "point_to_point_matcher.h"

namespace rehearse::comm {
namespace {

template <class T>
void add_once(std::vector<T*>& list, T* item) {
  if (std::ranges::find(list, item) == list.end()) list.push_back(item);
}

bool has_met(const std::vector<MatchedPair*>& pairs, const RankWork& work) {
  return std::ranges::any_of(pairs, [&work](const MatchedPair* pair) { return pair->is_of(work); });
}

}  // namespace

void Batches::add(Works works) {
  auto& batch = *batches_.emplace_back(std::make_unique<Batch>(Batch{std::move(works), 0, {}}));
  batch.unmatched = batch.works.size();
  for (const auto& work : batch.works) batch_of_.emplace(work.get(), &batch);
}

auto Batches::find(const RankWork* work) const -> Batch* {
  const auto found = batch_of_.find(work);
  return found != batch_of_.end() ? found->second : nullptr;
}

// The batches that contain one of the pair's calls, the batches of their matched peers, and so on. These batches are
// launched together, or not at all.
auto Batches::around(const MatchedPair& pair) const -> std::vector<Batch*> {
  std::vector<Batch*> found;
  const auto look_at = [&](const MatchedPair& each) {
    for (const auto* const work : {each.send(), each.recv()}) {
      if (auto* const batch = find(work)) add_once(found, batch);
    }
  };
  look_at(pair);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto* const each : found[i]->pairs) look_at(*each);
  }
  return found;
}

std::vector<MatchedPair*> Batches::add(MatchedPair& pair) {
  for (const auto* const work : {pair.send(), pair.recv()}) {
    if (auto* const batch = find(work)) {
      REHEARSE_CHECK(batch->unmatched > 0, work->rank(), batch->works.size());
      --batch->unmatched;
      add_once(batch->pairs, &pair);
    }
  }
  std::vector<MatchedPair*> pairs{&pair};
  const auto batches = around(pair);
  for (const auto* const batch : batches) {
    if (batch->unmatched > 0) return {};
    for (auto* const each : batch->pairs) add_once(pairs, each);
  }
  for (const auto* const batch : batches) {
    for (const auto& work : batch->works) batch_of_.erase(work.get());
    std::erase_if(batches_, [batch](const auto& known) { return known.get() == batch; });
  }
  return pairs;
}

void Batches::fail(const MatchedPair& pair) {
  for (const auto* const work : {pair.send(), pair.recv()}) {
    if (auto* const batch = find(work)) {
      ++batch->unmatched;
      std::erase(batch->pairs, &pair);
    }
  }
}

Works Batches::unmatched_elsewhere(const MatchedPair& pair, const RankWork& own) const {
  Works unmatched;
  for (const auto* const batch : around(pair)) {
    if (batch->unmatched == 0) continue;
    if (find(&own) == batch) return {};
    for (const auto& work : batch->works) {
      if (!has_met(batch->pairs, *work)) unmatched.push_back(work);
    }
  }
  return unmatched;
}

void Batches::clear() noexcept {
  batch_of_.clear();
  batches_.clear();
}

}  // namespace rehearse::comm
