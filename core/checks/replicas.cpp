// SPDX-License-Identifier: BSD-3-Clause
#include "checks/replicas.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

constexpr std::size_t kRowsShown = 8;

std::vector<int> sorted(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  return ranks;
}

// The value that most ranks have. If several values are equally common, the value of the lowest rank.
const ReplicaTable::Version& most_common(const ReplicaTable::Row& row) {
  return *std::ranges::max_element(row.versions, [](const auto& a, const auto& b) {
    if (a.ranks.size() != b.ranks.size()) return a.ranks.size() < b.ranks.size();
    return *std::ranges::min_element(a.ranks) > *std::ranges::min_element(b.ranks);
  });
}

std::vector<int> ranks_with(const ReplicaTable::Row& row) {
  std::vector<int> have;
  for (const auto& version : row.versions) have.insert(have.end(), version.ranks.begin(), version.ranks.end());
  return sorted(std::move(have));
}

OddRow odd_without(const ReplicaTable::Row& row, std::vector<int> missing) {
  auto have = ranks_with(row);
  const auto text =
      fmt::format("{} no \"{}\", which {} {}", describe_ranks(missing) + (missing.size() == 1 ? " has" : " have"),
                  row.name, describe_ranks(have), have.size() == 1 ? "has" : "have");
  return {missing.size() <= have.size() ? std::move(missing) : std::move(have), text};
}

bool is_odd(const ReplicaTable::Row& row, const std::vector<int>& here) {
  return row.versions.size() > 1 || !row.missing(here).empty();
}

std::string headline_of(const ReplicaRound& round, bool only_buffers, const std::string& first) {
  const auto of = round.name == kReplicas ? "" : fmt::format(" of \"{}\"", round.name);
  if (only_buffers) {
    return fmt::format("buffers{} differ in check #{} although all parameters agree: {}", of, round.number, first);
  }
  return fmt::format("replicas{} differ in check #{}: {}", of, round.number, first);
}

}  // namespace

std::string name_in_table(const NamedTensor& tensor) {
  if (!tensor.rows) return tensor.name;
  const auto first = tensor.rows->first;
  return fmt::format("{}[{}:{}]", tensor.name, first, first + tensor.tensor.size(0));
}

OddRow odd_of(const ReplicaTable::Row& row, const std::vector<int>& all) {
  const auto here = row.is_part ? ranks_with(row) : all;
  if (auto missing = row.missing(here); !missing.empty()) return odd_without(row, std::move(missing));
  const auto& most = most_common(row);
  OddRow odd;
  const ReplicaTable::Version* other = nullptr;  // among the versions other than `most`: the one with the lowest rank
  for (const auto& version : row.versions) {
    if (&version == &most) continue;
    odd.ranks.insert(odd.ranks.end(), version.ranks.begin(), version.ranks.end());
    const auto lowest = [](const auto& each) { return *std::ranges::min_element(each.ranks); };
    if (other == nullptr || lowest(version) < lowest(*other)) other = &version;
  }
  odd.ranks = sorted(std::move(odd.ranks));
  const auto by = difference_text(other->copy, most.copy);
  if (most.ranks.size() * 2 > here.size()) {
    odd.text = fmt::format("{} {} a different \"{}\" than {} ({})", describe_ranks(odd.ranks),
                           odd.ranks.size() == 1 ? "has" : "have", row.name, describe_ranks(sorted(most.ranks)), by);
    return odd;
  }
  odd.ranks = sorted(here);
  odd.text =
      fmt::format("{} have {} different \"{}\" ({} against {}: {})", describe_ranks(odd.ranks), row.versions.size(),
                  row.name, describe_ranks(sorted(other->ranks)), describe_ranks(sorted(most.ranks)), by);
  return odd;
}

void add_ranks(std::vector<int>& ranks, const std::vector<int>& more) {
  ranks.insert(ranks.end(), more.begin(), more.end());
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
}

void ReplicaTable::add_whole(const std::vector<Shard>& shards, const NamedTensor& whole) {
  auto& all = add(shards.back().rank, whole).shards;
  all.insert(all.end(), shards.begin(), shards.end());
}

std::vector<int> ReplicaTable::Row::missing(const std::vector<int>& here) const {
  if (is_part) return {};
  std::set<int> without(here.begin(), here.end());
  for (const auto& version : versions) {
    for (const int rank : version.ranks) without.erase(rank);
  }
  return {without.begin(), without.end()};
}

ReplicaTable::Row& ReplicaTable::row_of(const NamedTensor& tensor, int rank) {
  // A list may contain a name twice. The second tensor then gets its own row.
  for (auto name = name_in_table(tensor);; name += '\'') {
    const auto [entry, is_new] = index_of_.try_emplace(name, rows_.size());
    if (is_new) rows_.push_back({name, tensor.is_buffer, tensor.rows.has_value(), {}});
    auto& row = rows_[entry->second];
    const bool taken = std::ranges::any_of(row.versions, [&](const Version& version) {
      return std::ranges::find(version.ranks, rank) != version.ranks.end();
    });
    if (!taken) return row;
  }
}

ReplicaTable::Version& ReplicaTable::add(int rank, const NamedTensor& tensor) {
  auto& versions = row_of(tensor, rank).versions;
  const auto same =
      std::ranges::find_if(versions, [&](const Version& version) { return same_values(version.copy, tensor.tensor); });
  if (same == versions.end()) return versions.emplace_back(Version{copied(tensor.tensor), {rank}});
  same->ranks.push_back(rank);
  return *same;
}

void ReplicaTable::add(int rank, const ModelState& state) {
  for (const auto& tensor : state.tensors()) add(rank, tensor);
}

std::optional<StateFinding> evaluate(const ReplicaRound& round) {
  std::vector<const ReplicaTable::Row*> odd;
  for (const auto& row : round.shown.table.rows()) {
    if ((round.shown.with_buffers || !row.is_buffer) && is_odd(row, round.here)) odd.push_back(&row);
  }
  if (odd.empty()) return std::nullopt;
  const bool only_buffers = std::ranges::all_of(odd, [](const auto* row) { return row->is_buffer; });
  auto first = odd_of(*odd.front(), round.here);
  StateFinding finding{headline_of(round, only_buffers, first.text), std::move(first.ranks), {}};
  if (!round.shown.before.empty()) finding.details.push_back(round.shown.before);
  for (std::size_t i = 1; i < odd.size(); ++i) {
    const auto of_row = odd_of(*odd[i], round.here);
    if (i < kRowsShown) finding.details.push_back(of_row.text);
    // Without a majority, a row blames nobody, and buffers may follow each rank's data.
    const bool blames = of_row.ranks.size() < round.here.size() && (only_buffers || !odd[i]->is_buffer);
    if (blames) add_ranks(finding.ranks, of_row.ranks);
  }
  if (odd.size() > kRowsShown) finding.details.push_back(fmt::format("and {} more tensors", odd.size() - kRowsShown));
  if (only_buffers) {
    finding.details.emplace_back(
        "statistics that a module keeps of its inputs, as BatchNorm does, follow each rank's data unless something "
        "synchronizes them (broadcast_buffers, SyncBatchNorm)");
  }
  auto divergence = first_divergence(round.shown.writes, round.here);
  if (!divergence.text.empty()) finding.details.push_back(std::move(divergence.text));
  const auto where = divergence.places.find(finding.ranks.front());
  if (where != divergence.places.end()) finding.where = where->second;
  return finding;
}

}  // namespace rehearse::checks
