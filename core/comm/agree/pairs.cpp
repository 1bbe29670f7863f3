// SPDX-License-Identifier: BSD-3-Clause
#include "pairs.h"

#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/comm/title.h>

#include "comm/call/fingerprint.h"
#include "comm/call/memory_layout.h"

namespace rehearse::comm {
namespace {

// A tensor of the call that has elements; null: none has. All tensors of an all-to-all have the same memory format, so
// it does not matter which tensor this is.
const at::Tensor* sample_of(const Operation& call) {
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      if (tensor.numel() > 0) return &tensor;
    }
  }
  return nullptr;
}

bool comes_first(const MadeCall& one, const MadeCall& other, const GroupIdentity& group) {
  return group.global_rank(one.rank) < group.global_rank(other.rank);
}

Mismatch::Side side_of(PlacedCall call, const GroupIdentity& group) {
  return side_of(*call.call.operation, call.call.rank, group, std::move(call.where));
}

// Compares the number of elements that `sender` sends to `receiver` with the number that `receiver` expects. `part`:
// the index in each call's parts_of().
std::optional<Mismatch::Field> edge_difference(const MadeCall& sender, const MadeCall& receiver, std::size_t part,
                                               const GroupIdentity& group) {
  const auto& sending = parts_of(*sender.operation)[part];
  const auto& receiving = parts_of(*receiver.operation)[part];
  if (!knows_splits(sending) || !knows_splits(receiving)) return std::nullopt;
  const auto sent = elements_to(sending, receiver.rank);
  const auto expected = elements_from(receiving, sender.rank);
  if (sent == expected) return std::nullopt;
  Mismatch::Field field{
      fmt::format("splits of rank {} to rank {}", group.global_rank(sender.rank), group.global_rank(receiver.rank)),
      fmt::format("sends {}", sent), fmt::format("expects {}", expected)};
  if (comes_first(receiver, sender, group)) std::swap(field.first, field.second);
  return field;
}

// For operations that ignore strides.
std::optional<Mismatch::Field> format_difference(const MadeCall& one, const MadeCall& other,
                                                 const GroupIdentity& group) {
  const auto* const first = sample_of(*one.operation);
  const auto* const second = sample_of(*other.operation);
  if (first == nullptr || second == nullptr || same_format(*first, *second)) return std::nullopt;
  Mismatch::Field field{"strides", strides_text(*first), strides_text(*second)};
  if (comes_first(other, one, group)) std::swap(field.first, field.second);
  return field;
}

}  // namespace

bool has_elements(const MadeCall& call) { return sample_of(*call.operation) != nullptr; }

std::optional<Mismatch::Field> exchange_difference(const MadeCall& one, const MadeCall& other,
                                                   const GroupIdentity& group) {
  const auto parts = parts_of(*one.operation);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (!is_alltoall(parts[part].type)) continue;
    if (auto field = edge_difference(one, other, part, group)) return field;
    if (auto field = edge_difference(other, one, part, group)) return field;
  }
  return is_alltoall(one.operation->type) ? format_difference(one, other, group) : std::nullopt;
}

std::vector<int> awaited_by_message(const Operation& call, int rank, const GroupIdentity& group) {
  if (call.peer >= 0) return {group.global_rank(call.peer)};
  auto others = group.ranks;
  others.erase(others.begin() + rank);
  return others;
}

Mismatch mismatch_of_two(PlacedCall one, PlacedCall other, Mismatch::Field field, const GroupIdentity& group) {
  Mismatch mismatch;
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group.name;
  mismatch.sequence = one.call.sequence;
  const bool in_order = comes_first(one.call, other.call, group);
  mismatch.first = side_of(std::move(in_order ? one : other), group);
  mismatch.second = side_of(std::move(in_order ? other : one), group);
  mismatch.fields = {std::move(field)};
  return mismatch;
}

Mismatch mismatch_of_pair(PlacedCall met, PlacedCall last, std::vector<Mismatch::Field> fields,
                          const GroupIdentity& group) {
  Mismatch mismatch;
  mismatch.kind = Mismatch::Kind::point_to_point;
  mismatch.group = group.name;
  mismatch.sequence = last.call.sequence;
  if (last.call.operation->type == c10d::OpType::SEND) {
    for (auto& field : fields) std::swap(field.first, field.second);
  }
  mismatch.first = side_of(std::move(met), group);
  mismatch.second = side_of(std::move(last), group);
  mismatch.fields = std::move(fields);
  return mismatch;
}

}  // namespace rehearse::comm
