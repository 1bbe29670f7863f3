// SPDX-License-Identifier: BSD-3-Clause
// All-to-alls: what each rank sends to another must be what that one expects.
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/comm/title.h>

#include "collective_matcher.h"
#include "comm/call/fingerprint.h"
#include "comm/call/layout.h"

namespace rehearse::comm {

namespace {

// Any with elements: a call's own tensors are of one memory format.
const at::Tensor* sample_of(const Operation& call) {
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      if (tensor.numel() > 0) return &tensor;
    }
  }
  return nullptr;
}

}  // namespace

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
  const auto* const own = sample_of(work.operation);
  if (own == nullptr) return;
  for (const auto& other : works_) {
    const auto* const sample = other != nullptr ? sample_of(other->operation) : nullptr;
    if (sample == nullptr) continue;
    if (same_format(*own, *sample)) return;
    const bool own_first = work.global_rank() < other->global_rank();
    disagree(work, *other, work,
             {"strides", strides_text(own_first ? *own : *sample), strides_text(own_first ? *sample : *own)});
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
  const int from = sender.global_rank();
  const int to = receiver.global_rank();
  auto sends = fmt::format("sends {}", sent);
  auto expects = fmt::format("expects {}", expected);
  disagree(sender, receiver, caller,
           {fmt::format("splits of rank {} to rank {}", from, to), from < to ? sends : expects,
            from < to ? expects : sends});
}

// `field`: the value of the lower rank first.
void CollectiveSlot::disagree(const RankWork& one, const RankWork& other, const RankWork& caller,
                              Mismatch::Field field) {
  const bool in_order = one.global_rank() < other.global_rank();
  const RankWork& first = in_order ? one : other;
  const RankWork& second = in_order ? other : one;
  disagreeing_ = {first.global_rank(), second.global_rank()};
  Mismatch mismatch;
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group_.name;
  mismatch.sequence = sequence_;
  const auto side = [&](const RankWork& work) {
    auto where = &work == &caller ? exec::CallSite::capture() : context_.recorder.call_site(work.event());
    return side_of(work.operation, work.rank(), group_, std::move(where));
  };
  mismatch.first = side(first);
  mismatch.second = side(second);
  mismatch.fields = {std::move(field)};
  services_.mismatches.fail(mismatch);
}

}  // namespace rehearse::comm
