// SPDX-License-Identifier: BSD-3-Clause
#include "group_registry.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/creation_calls.h"
#include "comm/agree/group_arguments.h"
#include "comm/agree/wording.h"
#include "group_world.h"

namespace rehearse::comm {
namespace {

// Describes a rank that waits in a new_group() on which the ranks disagree.
class CreationObserver final : public exec::Observer {
 public:
  CreationObserver(const CreationCalls& calls, std::size_t index, int rank)
      : calls_(calls), index_(index), rank_(rank) {}

 private:
  exec::Wait describe() const override {
    const auto call = new_group_title(index_);
    return {disagreeing(call), call, calls_.vote().disagreeing_ranks(rank_), false, exec::Wait::Kind::call};
  }

  const CreationCalls& calls_;
  const std::size_t index_;
  const int rank_;
};

// The description that c10d gives to a group that new_group() makes.
std::string description_of(std::string_view name) { return std::string(name.empty() ? "undefined" : name); }

}  // namespace

bool GroupRegistry::has_lost(const Absences& absent, int rank) {
  const auto found = absent.find(rank);
  return found != absent.end() && found->second == Absence::lost;
}

c10::intrusive_ptr<GroupState> GroupRegistry::make(std::string name, std::string description, std::vector<int> ranks,
                                                   const GroupIdentity* parent) {
  const auto id = world_.events.add_group({name, std::move(description), ranks});
  auto group = c10::make_intrusive<GroupState>(world_, GroupIdentity{id, std::move(name), std::move(ranks)});
  world_.services.fabric.open(group->identity(), parent);
  return group;
}

exec::CallSite GroupRegistry::call_site() const {
  return world_.options.call_sites ? exec::CallSite::capture() : exec::CallSite();
}

c10::intrusive_ptr<GroupState> GroupRegistry::create(std::span<const int> ranks, std::string_view name) {
  const int rank = exec::this_rank::rank();
  auto& made = made_[static_cast<std::size_t>(rank)];
  check_group_ranks(ranks, static_cast<int>(made_.size()));
  // A restarted rank repeats this new_group(). The group existed before the rank crashed, so the arguments are not
  // compared.
  if (made < creations_.size() && has_lost(creations_[made].absent, rank)) return creations_[made++].group;
  if (!name.empty()) check_name_is_free(name, made);
  if (made == creations_.size()) start_creation(ranks, name);
  const auto index = made++;  // before it waits: another thread of the rank may call meanwhile
  Creation& creation = creations_[index];
  join(creation, ranks, name, rank);
  if (!creation.calls.fit()) join_mismatch(creation, index, rank);
  return creation.group;
}

c10::intrusive_ptr<GroupState> GroupRegistry::create_locally(std::span<const int> ranks, std::string_view name) {
  const int rank = exec::this_rank::rank();
  check_group_ranks(ranks, static_cast<int>(made_.size()));
  check_is_member(ranks, rank);
  const auto given = name.empty() ? name_of_local_group(ranks) : std::string(name);
  return derive("new_local_group", given, {ranks.begin(), ranks.end()}, rank, nullptr);
}

void GroupRegistry::check_name_is_free(std::string_view name, std::size_t groups) const {
  for (std::size_t i = 0; i < groups; ++i) {
    if (creations_[i].group->identity().name == name) refuse_taken_name(name);
  }
}

void GroupRegistry::start_creation(std::span<const int> ranks, std::string_view name) {
  const auto index = creations_.size();
  std::string unique(name);
  if (unique.empty()) {
    unique = name_of_new_group(index);
    check_name_is_free(unique, index);
  }
  auto group = make(unique, description_of(name), {ranks.begin(), ranks.end()}, nullptr);
  if (const auto others = groups_named(unique); others > 0) group->register_as(numbered_name(unique, others));
  creations_.push_back(
      {std::move(group), CreationCalls(made_.size(), index), down_, nullptr, exec::CallSite::capture()});
}

void GroupRegistry::join(Creation& creation, std::span<const int> ranks, std::string_view name, int rank) {
  const bool fits = creation.calls.fits(ranks, name);
  creation.calls.add(rank, ranks, name, [&] { return fits ? call_site() : exec::CallSite::capture(); });
  if (fits || creation.calls.is_first(ranks, name)) return;
  const auto& group = creation.group->identity();
  world_.events.note_other_creation({group.id, rank, {group.name, description_of(name), {ranks.begin(), ranks.end()}}});
}

void GroupRegistry::join_mismatch(Creation& creation, std::size_t index, int rank) {
  const bool opens = creation.mismatch == nullptr;
  if (opens) creation.mismatch = std::make_unique<PendingCreationMismatch>(world_.services, creation.calls);
  auto& mismatch = *creation.mismatch;
  mismatch.note_arrival();
  const CreationObserver observer(creation.calls, index, rank);
  if (opens && world_.mismatches.begin_mismatch()) mismatch.settle(observer);
  exec::this_rank::wait_for_the_end(observer);
}

std::size_t GroupRegistry::groups_named(const std::string& name) const {
  const auto has_name = [&](const auto& each) { return each.group->identity().name == name; };
  return static_cast<std::size_t>(std::ranges::count_if(creations_, has_name) +
                                  std::ranges::count_if(derivations_, has_name));
}

c10::intrusive_ptr<GroupState> GroupRegistry::derive(const char* call, const std::string& name,
                                                     const std::vector<int>& ranks, int rank,
                                                     const GroupIdentity* parent) {
  if (parent != nullptr) parents_.insert(parent);
  const auto group_rank = static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
  const auto is_next = [&](const Derivation& derivation) {
    const auto& group = derivation.group->identity();
    return group.ranks == ranks && group.name == name && derivation.taken[group_rank] == 0 &&
           !has_lost(derivation.absent, rank);
  };
  auto found = std::ranges::find_if(derivations_, is_next);
  if (found == derivations_.end()) {
    const auto others = groups_named(name);
    derivations_.push_back(
        {make(name, name, ranks, parent), call, std::vector<char>(ranks.size()), call_site(), down_});
    found = std::prev(derivations_.end());
    if (others > 0) found->group->register_as(numbered_name(name, others));
  }
  found->taken[group_rank] = 1;
  return found->group;
}

c10::intrusive_ptr<GroupState> GroupRegistry::companion(const GroupState& group, const std::string& name) {
  for (const auto& [of, companion] : companions_) {
    if (of == &group && companion->identity().name == name) return companion;
  }
  return companions_.emplace_back(&group, make(name, name, group.identity().ranks, &group.identity())).second;
}

std::vector<PendingOperation> GroupRegistry::pending(int only_of) const {
  std::vector<PendingOperation> pending;
  for (const auto& creation : creations_) creation.group->list_pending(pending, only_of);
  for (const auto& derivation : derivations_) derivation.group->list_pending(pending, only_of);
  for (const auto& [of, companion] : companions_) companion->list_pending(pending, only_of);
  std::ranges::sort(pending, [](const PendingOperation& a, const PendingOperation& b) {
    return std::tie(a.record_id, a.rank) < std::tie(b.record_id, b.rank);
  });
  return pending;
}

std::vector<PendingGroup> GroupRegistry::pending_groups() const {
  std::vector<PendingGroup> pending;
  const auto ranks = ranks_below(static_cast<int>(made_.size()));
  for (std::size_t index = 0; index < creations_.size(); ++index) {
    const Creation& creation = creations_[index];
    PendingGroup group{new_group_title(index), creation.group->identity().name, creation.calls.called_by(ranks),
                       creation.calls.missing(ranks), creation.calls.vote().where()};
    std::erase_if(group.missing, [&](int rank) { return creation.absent.contains(rank); });
    if (!group.missing.empty()) pending.push_back(std::move(group));
  }
  for (const auto& derivation : derivations_) {
    const auto& identity = derivation.group->identity();
    PendingGroup group{derivation.call, identity.name, {}, {}, derivation.where};
    for (int group_rank = 0; group_rank < identity.size(); ++group_rank) {
      const int rank = identity.global_rank(group_rank);
      const bool has_called = derivation.taken[static_cast<std::size_t>(group_rank)] != 0;
      // A rank that has begun again does not make the groups for which it was expected before its crash.
      if (!has_called && (derivation.absent.contains(rank) || begun_again_.contains(rank))) continue;
      (has_called ? group.called_by : group.missing).push_back(rank);
    }
    if (!group.missing.empty()) pending.push_back(std::move(group));
  }
  return pending;
}

bool GroupRegistry::is_used(const GroupState& group) const {
  const auto is_of_group = [&](const auto& companion) { return companion.first == &group; };
  return group.has_calls() || parents_.contains(&group.identity()) || std::ranges::any_of(companions_, is_of_group);
}

std::vector<UnusedGroups> GroupRegistry::unused_groups() const {
  std::map<exec::CallSite, std::size_t> index_of;
  std::set<exec::CallSite> used;
  std::vector<UnusedGroups> unused;
  for (std::size_t index = 1; index < creations_.size(); ++index) {  // the first one is the world's group
    const auto& [group, calls, absent, mismatch, where] = creations_[index];
    if (is_used(*group)) used.insert(where);
    if (group->size() < 2) continue;
    const auto [entry, is_new] = index_of.try_emplace(where, unused.size());
    if (is_new) unused.push_back({{}, where});
    unused[entry->second].names.push_back(group->identity().name);
  }
  std::erase_if(unused, [&](const auto& groups) { return used.contains(groups.where); });
  return unused;
}

void GroupRegistry::lose(int rank, bool connections_break) {
  const auto lose_in = [&](GroupState& group) {
    const auto& ranks = group.identity().ranks;
    const auto found = std::ranges::find(ranks, rank);
    if (found != ranks.end()) group.lose(static_cast<int>(found - ranks.begin()), connections_break);
  };
  for (auto& creation : creations_) {
    lose_in(*creation.group);
    creation.absent[rank] = Absence::lost;
  }
  for (auto& derivation : derivations_) {
    lose_in(*derivation.group);
    derivation.absent[rank] = Absence::lost;
  }
  for (auto& [of, companion] : companions_) lose_in(*companion);
  down_[rank] = Absence::down;
}

void GroupRegistry::begin_again(int rank) noexcept {
  made_[static_cast<std::size_t>(rank)] = 0;
  down_.erase(rank);
  begun_again_.insert(rank);
}

void GroupRegistry::close() noexcept {
  for (auto& creation : creations_) creation.group->close();
  for (auto& derivation : derivations_) derivation.group->close();
  for (auto& [of, companion] : companions_) companion->close();
}

}  // namespace rehearse::comm
