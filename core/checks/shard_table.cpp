// SPDX-License-Identifier: BSD-3-Clause
#include "checks/shard_table.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "checks/values/gradient_ratio.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

// Returns an undefined tensor if any part is undefined.
at::Tensor joined_rows(const std::vector<at::Tensor>& parts) {
  if (std::ranges::any_of(parts, [](const at::Tensor& part) { return !part.defined(); })) return {};
  return at::cat(parts);
}

}  // namespace

ShardTable::Whole& ShardTable::whole_of(const NamedTensor& tensor) {
  const auto found = std::ranges::find_if(wholes_, [&](const Whole& whole) { return whole.name == tensor.name; });
  if (found != wholes_.end()) return *found;
  wholes_.push_back({tensor.name, tensor.rows->sizes, tensor.tensor.requires_grad(), {}});
  return wholes_.back();
}

void ShardTable::add(int rank, const ModelState& state) {
  for (const auto& each : state.tensors()) {
    if (!each.rows) continue;
    auto& whole = whole_of(each);
    if (each.tensor.size(0) == 0) continue;
    whole.shards[each.rows->first].push_back({rank, copied(each.tensor), copied(each.tensor.grad())});
  }
}

std::vector<NamedTensor> ShardTable::values() const {
  std::vector<NamedTensor> values;
  for (const auto& whole : wholes_) {
    std::vector<at::Tensor> parts;
    std::int64_t next = 0;
    for (const auto& [first, shards] : whole.shards) {
      if (first != next) break;
      parts.push_back(shards.front().value);
      next += parts.back().size(0);
    }
    if (next != whole.sizes.front()) {
      throw std::invalid_argument(
          fmt::format("RankContext::check_gradients(): no rank has shown row {} of \"{}\". All ranks that have a shard "
                      "of the model "
                      "make the check",
                      next, whole.name));
    }
    values.push_back({whole.name, parts.empty() ? at::Tensor() : at::cat(parts)});
  }
  return values;
}

void ShardTable::add_to(ReplicaTable& table, at::Tensor Shard::* which) const {
  for (const auto& whole : wholes_) {
    if (which == &Shard::gradient && !whole.is_trained) continue;
    std::size_t replicas = 0;
    for (const auto& [first, shards] : whole.shards) replicas = std::max(replicas, shards.size());
    for (std::size_t i = 0; i < replicas; ++i) {
      std::vector<at::Tensor> parts;
      std::vector<ReplicaTable::Shard> of_ranks;
      for (const auto& [first, shards] : whole.shards) {
        const auto& shard = shards[std::min(i, shards.size() - 1)];
        parts.push_back(shard.*which);
        of_ranks.push_back({shard.rank, first, shard.value.size(0)});
      }
      table.add_whole(of_ranks, {whole.name, joined_rows(parts)});
    }
  }
}

std::optional<RanksThatDiffer> ranks_that_differ(const std::vector<PartOfRank>& all, bool are_rows, double scale,
                                                 double tolerance) {
  constexpr const char* kNoMultiple = "no multiple of what one process computes";
  struct All {
    std::vector<at::Tensor> values, references, roundings;
  };
  std::map<int, All> of_ranks;
  for (const auto& each : all) {
    auto& parts = of_ranks[each.rank];
    parts.values.push_back(each.values);
    parts.references.push_back(each.reference);
    if (each.rounding.defined()) parts.roundings.push_back(each.rounding);
  }
  std::vector<int> right, wrong;
  std::map<std::string, std::vector<int>> sides;
  for (const auto& [rank, parts] : of_ranks) {
    const auto values = at::cat(parts.values);
    const auto rounding = parts.roundings.empty() ? at::Tensor() : at::cat(parts.roundings);
    const auto ratio = ratio_of(values, at::cat(parts.references), scale, tolerance, rounding);
    const bool is_right = ratio.kind == GradientRatio::Kind::equal;
    (is_right ? right : wrong).push_back(rank);
    if (is_right) continue;
    const bool is_multiple = ratio.kind == GradientRatio::Kind::multiple && values.numel() > 1;
    sides[ratio.kind == GradientRatio::Kind::missing ? "zero or missing"
          : is_multiple                              ? times_text(ratio)
                                                     : kNoMultiple]
        .push_back(rank);
  }
  if (sides.empty()) return std::nullopt;
  if (right.empty() && (sides.size() == 1 || sides.contains(kNoMultiple))) return RanksThatDiffer{wrong, ""};
  constexpr std::size_t kMost = 4;
  std::vector<std::string> texts;
  for (const auto& [text, ranks] : sides) {
    if (texts.size() == kMost) break;
    texts.push_back(fmt::format("those of {} are {}", describe_ranks(ranks), text));
  }
  if (sides.size() > kMost) texts.push_back(fmt::format("and {} more", sides.size() - kMost));
  const auto meaning =
      right.empty() ? std::string("wrong by another factor on each rank: ")
                    : fmt::format("right {} {}, but ", are_rows ? "in the rows of" : "on", describe_ranks(right));
  return RanksThatDiffer{wrong, fmt::format("{}{}", meaning, fmt::join(texts, ", ")), !sides.contains(kNoMultiple)};
}

}  // namespace rehearse::checks
