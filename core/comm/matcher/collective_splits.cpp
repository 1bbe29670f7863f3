// SPDX-License-Identifier: BSD-3-Clause
// All-to-alls: what each rank sends to another must be what that one expects.
#include <algorithm>

#include <fmt/format.h>

#include "collective_matcher.h"
#include "comm/call/fingerprint.h"
#include "comm/group/group_state.h"

namespace rehearse::comm {

void CollectiveSlot::check_splits(const RankWork& work) {
  if (is_alltoall(work.operation.type)) return check_edges(work);
  for (std::size_t part = 0; part < work.operation.parts.size(); ++part) {
    if (is_alltoall(work.operation.parts[part].type)) check_all_edges(work, part);
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
  const auto sent = elements_to(parts_of(sender.operation)[part], receiver.rank());
  const auto expected = elements_from(parts_of(receiver.operation)[part], sender.rank());
  if (sent == expected) return;
  const int from = group_.global_rank(sender.rank());
  const int to = group_.global_rank(receiver.rank());
  disagreeing_ = {std::min(from, to), std::max(from, to)};
  Mismatch mismatch;
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group_.name();
  mismatch.sequence = sequence_;
  const auto side_of = [&](const RankWork& work) {
    return group_.side_of(work, &work == &caller ? exec::CallSite::capture() : group_.call_site(work));
  };
  mismatch.first = side_of(from < to ? sender : receiver);
  mismatch.second = side_of(from < to ? receiver : sender);
  auto sends = fmt::format("sends {}", sent);
  auto expects = fmt::format("expects {}", expected);
  mismatch.fields = {{fmt::format("splits of rank {} to rank {}", from, to), from < to ? sends : expects,
                      from < to ? expects : sends}};
  group_.world().fail(mismatch);
}

}  // namespace rehearse::comm
