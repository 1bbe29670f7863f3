// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/communicators.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse/comm/errors.h>
#include <rehearse/comm/rank_backend.h>
#include <rehearse/exec/this_rank.h>

#include "comm/call/fingerprint.h"
#include "creation_dispute.h"
#include "group_state.h"

namespace rehearse::comm {
namespace {

void check_ranks(std::span<const int> ranks, int world_size) {
  std::vector<int> copy;  // every rank makes every group: not of lists in order, as most are
  auto sorted = ranks;
  if (!std::is_sorted(ranks.begin(), ranks.end())) {
    copy.assign(ranks.begin(), ranks.end());
    std::sort(copy.begin(), copy.end());
    sorted = copy;
  }
  TORCH_CHECK_VALUE(!sorted.empty(), "new_group: the list of ranks is empty");
  TORCH_CHECK_VALUE(sorted.front() >= 0 && sorted.back() < world_size, "new_group: the ranks are ", members_text(ranks),
                    "; a world of ", world_size, " has ranks 0 to ", world_size - 1);
  TORCH_CHECK_VALUE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                    "new_group: a rank is named twice in ", members_text(ranks));
}

c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(const c10::intrusive_ptr<GroupState>& state, int rank,
                                                          const c10::intrusive_ptr<c10d::Store>& store,
                                                          const CommunicatorOptions& options) {
  c10::intrusive_ptr<c10d::Store> prefixed;
  if (store != nullptr) prefixed = c10::make_intrusive<c10d::PrefixStore>(state->name(), store);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(prefixed, rank, state->size());
  const auto backend = c10::make_intrusive<RankBackend>(state, rank, options.timeout);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName(state->name());
  group->setGroupDesc(state->name());
  if (options.register_groups) c10d::register_process_group(state->name(), group);
  return group;
}

}  // namespace

Communicators::Communicators(exec::RankExecutor& executor, Fabric& fabric, EventLog& events, CheckerSink& sink,
                             CommunicatorOptions options)
    : executor_(executor),
      clock_(executor.clock()),
      fabric_(fabric),
      events_(events),
      sink_(sink),
      options_(options),
      labels_(static_cast<std::size_t>(executor.options().ranks)),
      payloads_(labels_.size()),
      groups_made_(labels_.size()),
      works_(labels_.size()) {
  executor_.explain_waits_by(this);
}

Communicators::~Communicators() {
  executor_.explain_waits_by(nullptr);
  for (auto& creation : creations_) creation.group->close();
  for (auto& derivation : derivations_) derivation.group->close();
  for (auto& [of, companion] : companions_) companion->close();
}

c10::intrusive_ptr<c10d::ProcessGroup> Communicators::new_world_group(const c10::intrusive_ptr<c10d::Store>& store) {
  std::vector<int> ranks(labels_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return new_group(ranks, "world", store);
}

c10::intrusive_ptr<c10d::ProcessGroup> Communicators::new_group(std::span<const int> ranks, std::string_view name,
                                                                const c10::intrusive_ptr<c10d::Store>& store) {
  const int rank = exec::this_rank::rank();
  auto& made = groups_made_[static_cast<std::size_t>(rank)];
  check_ranks(ranks, static_cast<int>(labels_.size()));
  if (!name.empty()) check_name_is_free(name, made);
  if (made < creations_.size()) {
    join_creation(ranks, name, made, rank);
  } else {
    start_creation(ranks, name, rank);
  }
  Creation& creation = creations_[made++];
  creation.called[static_cast<std::size_t>(rank)] = 1;
  const auto place = std::find(ranks.begin(), ranks.end(), rank);
  if (place == ranks.end()) return {};
  return make_process_group(creation.group, static_cast<int>(place - ranks.begin()), store, options_);
}

void Communicators::check_name_is_free(std::string_view name, std::size_t groups) const {
  for (std::size_t i = 0; i < groups; ++i) {
    TORCH_CHECK_VALUE(creations_[i].group->name() != name, "new_group: there is a group of the name \"", name,
                      "\" already");
  }
}

void Communicators::start_creation(std::span<const int> ranks, std::string_view name, int rank) {
  std::string unique(name);
  if (unique.empty()) {
    unique = fmt::format("group{}", creations_.size());
    check_name_is_free(unique, creations_.size());
  }
  Creation creation;
  std::vector<int> members(ranks.begin(), ranks.end());
  const auto id = events_.add_group({unique, unique, members});
  creation.group = c10::make_intrusive<GroupState>(*this, id, unique, std::move(members));
  creation.given_name = name;
  creation.called.resize(labels_.size());
  creation.first = rank;
  if (options_.call_sites) creation.where = exec::CallSite::capture();
  creations_.push_back(std::move(creation));
}

void Communicators::join_creation(std::span<const int> ranks, std::string_view name, std::size_t index, int rank) {
  Creation& creation = creations_[index];
  const auto& members = creation.group->ranks();
  const bool same_ranks = std::equal(ranks.begin(), ranks.end(), members.begin(), members.end());
  if (same_ranks && name == creation.given_name && creation.dispute == nullptr) {
    if (options_.call_sites && rank < creation.first) {
      creation.first = rank;
      creation.where = exec::CallSite::capture();
    }
    return;
  }
  const bool opens = creation.dispute == nullptr;
  if (opens) {
    creation.dispute = std::make_unique<CreationDispute>(*this, labels_.size(), index);
    for (int other = 0; other < static_cast<int>(labels_.size()); ++other) {
      if (creation.called[static_cast<std::size_t>(other)] == 0) continue;
      const auto where = other == creation.first ? creation.where : exec::CallSite{};
      creation.dispute->add(other, members, creation.given_name, where);
    }
  }
  // Others may make further groups meanwhile, and so move this one.
  CreationDispute& dispute = *creation.dispute;
  dispute.add(rank, ranks, name, exec::CallSite::capture());
  const CreationObserver observer(dispute, index, rank);
  if (opens && begin_dispute()) dispute.settle(observer);
  dispute.wait_for_the_end(observer);
}

void Communicators::release_works() noexcept {
  auto& works = works_[static_cast<std::size_t>(exec::this_rank::rank())];
  while (!works.empty()) {
    RankWork& work = works.front();
    works.pop_front();
    if (!work.asked() && work.record_id() != RankWork::kNotRecorded) {
      work.mark_asked();
      note_unwaited(work);
    }
    // The last owner may be the registry; a work that only weak pointers keep is in none.
    if (c10::raw::intrusive_ptr::use_count(&work) == 0 || c10d::get_work_registry_size() == 0) continue;
    c10d::unregister_work(c10::intrusive_ptr<c10d::Work>::reclaim_copy(&work));
  }
}

c10::intrusive_ptr<GroupState> Communicators::derive_group(const char* call, const std::string& name,
                                                           const std::vector<int>& ranks, int rank) {
  const auto place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const auto is_next = [&](const Derivation& derivation) {
    const auto& group = *derivation.group;
    return group.ranks() == ranks && group.name() == name && derivation.taken[place] == 0;
  };
  auto found = std::find_if(derivations_.begin(), derivations_.end(), is_next);
  if (found == derivations_.end()) {
    auto group = c10::make_intrusive<GroupState>(*this, events_.add_group({name, name, ranks}), name, ranks);
    auto where = options_.call_sites ? exec::CallSite::capture() : exec::CallSite();
    derivations_.push_back({std::move(group), call, std::vector<char>(ranks.size()), std::move(where)});
    found = std::prev(derivations_.end());
  }
  found->taken[place] = 1;
  return found->group;
}

c10::intrusive_ptr<GroupState> Communicators::companion_group(const GroupState& group, const std::string& name) {
  for (const auto& [of, companion] : companions_) {
    if (of == &group && companion->name() == name) return companion;
  }
  const auto& ranks = group.ranks();
  auto made = c10::make_intrusive<GroupState>(*this, events_.add_group({name, name, ranks}), name, ranks);
  companions_.emplace_back(&group, made);
  return made;
}

void Communicators::set_label(int rank, const std::string* label) noexcept {
  labels_[static_cast<std::size_t>(rank)] = {label, label != nullptr ? text_hash(*label) : 0};
}

void Communicators::name_payload(int rank, const at::Tensor& tensor, const std::string& name) {
  const auto [entry, is_new] = payload_names_.try_emplace(name);
  if (is_new) entry->second = {name, text_hash(name)};
  const NamedTensor named{decltype(NamedTensor::tensor)(tensor.getIntrusivePtr()), &entry->second};
  payloads_[static_cast<std::size_t>(rank)].insert_or_assign(tensor.unsafeGetTensorImpl(), named);
}

void Communicators::forget_payload(int rank, const c10::TensorImpl* tensor) noexcept {
  payloads_[static_cast<std::size_t>(rank)].erase(tensor);
}

const PayloadName* Communicators::find_payload(const NamedTensors& names, const Operation& call) noexcept {
  const auto found = names.find(call.inputs.front().unsafeGetTensorImpl());
  return found != names.end() ? found->second.name : nullptr;
}

void Communicators::fail(const Mismatch& mismatch) {
  const auto text = to_string(mismatch);
  report(mismatch);
  executor_.stop(text);
  throw MismatchError(text, mismatch.group, mismatch.sequence, {mismatch.first.rank, mismatch.second.rank});
}

std::vector<PendingOperation> Communicators::pending(int only_of) const {
  std::vector<PendingOperation> pending;
  for (const auto& creation : creations_) creation.group->list_pending(pending, only_of);
  for (const auto& derivation : derivations_) derivation.group->list_pending(pending, only_of);
  for (const auto& [of, companion] : companions_) companion->list_pending(pending, only_of);
  std::sort(pending.begin(), pending.end(), [](const PendingOperation& a, const PendingOperation& b) {
    return std::tie(a.record_id, a.rank) < std::tie(b.record_id, b.rank);
  });
  return pending;
}

auto Communicators::explain_wait(int rank) const -> Explanation {
  for (auto& call : pending(rank)) {
    const bool could_be = !call.waits_for.empty() && !call.gave_up && call.record_id != RankWork::kNotRecorded;
    if (could_be) return {std::move(call.description), std::move(call.call), std::move(call.waits_for)};
  }
  return {};
}

std::vector<PendingGroup> Communicators::pending_groups() const {
  std::vector<PendingGroup> pending;
  for (std::size_t index = 0; index < creations_.size(); ++index) {
    const Creation& creation = creations_[index];
    PendingGroup group{fmt::format("new_group #{}", index), creation.group->name(), {}, {}, creation.where};
    for (std::size_t rank = 0; rank < labels_.size(); ++rank) {
      (creation.called[rank] != 0 ? group.called_by : group.missing).push_back(static_cast<int>(rank));
    }
    if (!group.missing.empty()) pending.push_back(std::move(group));
  }
  for (const auto& derivation : derivations_) {
    PendingGroup group{derivation.call, derivation.group->name(), {}, {}, derivation.where};
    for (std::size_t place = 0; place < derivation.taken.size(); ++place) {
      (derivation.taken[place] != 0 ? group.called_by : group.missing)
          .push_back(derivation.group->global_rank(static_cast<int>(place)));
    }
    if (!group.missing.empty()) pending.push_back(std::move(group));
  }
  return pending;
}

}  // namespace rehearse::comm
