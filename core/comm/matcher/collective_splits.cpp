// SPDX-License-Identifier: BSD-3-Clause
// All-to-alls: what each rank sends to another must be what that one expects.
#include <algorithm>
#include <utility>

#include "collective_matcher.h"
#include "comm/agree/pairs.h"
#include "comm/call/fingerprint.h"

namespace rehearse::comm {

void CollectiveSlot::check_splits(const RankWork& work) {
  if (is_alltoall(work.operation.type)) {
    check_edges(work);
    return check_format(work);
  }
  for (std::size_t part = 0; part < work.operation.parts.size(); ++part) {
    if (is_alltoall(work.operation.parts[part].type)) check_all_edges(work, part);
  }
}

// Memory goes as it lies: what one rank sends as channels_last another one must not take for something else.
void CollectiveSlot::check_format(const RankWork& work) {
  const auto own = work.made();
  if (!has_elements(own)) return;
  for (const auto& other : works_) {
    if (other == nullptr || !has_elements(other->made())) continue;
    auto field = format_difference(own, other->made(), group_);
    if (!field) return;
    disagree(work, *other, work, std::move(*field));
  }
}

// The usual all-to-all has equal splits everywhere, and needs no look at its n * n edges.
void CollectiveSlot::check_edges(const RankWork& work) {
  const auto split = even_split(work.operation);
  if (first_ == nullptr) even_split_ = split;
  if (split != even_split_) even_split_ = -1;
  if (even_split_ < 0) check_all_edges(work, 0);
}

void CollectiveSlot::check_all_edges(const RankWork& work, std::size_t part) {
  for (const auto& other : works_) {
    if (other == nullptr) continue;
    check_edge(work, *other, work, part);
    check_edge(*other, work, work, part);
  }
}

void CollectiveSlot::check_edge(const RankWork& sender, const RankWork& receiver, const RankWork& caller,
                                std::size_t part) {
  auto field = edge_difference(sender.made(), receiver.made(), part, group_);
  if (field) disagree(sender, receiver, caller, std::move(*field));
}

void CollectiveSlot::disagree(const RankWork& one, const RankWork& other, const RankWork& caller,
                              Mismatch::Field field) {
  disagreeing_ = {one.global_rank(), other.global_rank()};
  std::sort(disagreeing_.begin(), disagreeing_.end());
  const auto place_of = [&](const RankWork& work) {
    return &work == &caller ? exec::CallSite::capture() : context_.recorder.call_site(work.event());
  };
  const auto first = one.made(), second = other.made();
  services_.mismatches.fail(
      mismatch_of_two({first, place_of(one)}, {second, place_of(other)}, std::move(field), group_));
}

}  // namespace rehearse::comm
