// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/communicators.h>

#include <algorithm>
#include <utility>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse_internal/comm/rank_backend.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/operators/noted_group.h>

#include "comm/group/group_world.h"

namespace rehearse::comm {
namespace {

c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(const c10::intrusive_ptr<GroupState>& state, int rank,
                                                          const c10::intrusive_ptr<c10d::Store>& store,
                                                          const GroupWorld& world) {
  const auto& name = state->identity().name;
  c10::intrusive_ptr<c10d::Store> prefixed;
  if (store != nullptr) prefixed = c10::make_intrusive<c10d::PrefixStore>(name, store);
  auto group = c10::make_intrusive<operators::NotedGroup>(prefixed, rank, state->size());
  const auto backend = c10::make_intrusive<RankBackend>(state, rank, world.options.timeout);
  for (const auto device : world.services.fabric.device_types()) {
    group->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName(state->registered_name());
  group->setGroupDesc(name);
  if (world.options.register_groups) c10d::register_process_group(state->registered_name(), group);
  return group;
}

}  // namespace

Communicators::Communicators(exec::RankExecutor& executor, Fabric& fabric, EventLog& events, CheckerSink& sink,
                             const CommunicatorOptions& options)
    : executor_(executor), world_(std::make_unique<GroupWorld>(executor, fabric, events, sink, options)) {
  executor_.explain_waits_by(this);
}

Communicators::~Communicators() { executor_.explain_waits_by(nullptr); }

c10::intrusive_ptr<c10d::ProcessGroup> Communicators::new_world_group(const c10::intrusive_ptr<c10d::Store>& store) {
  return new_group(ranks_below(executor_.options().ranks), "world", store);
}

c10::intrusive_ptr<c10d::ProcessGroup> Communicators::new_group(std::span<const int> ranks, std::string_view name,
                                                                const c10::intrusive_ptr<c10d::Store>& store) {
  const auto group = world_->groups.create(ranks, name);
  const auto& members = group->identity().ranks;
  const auto found = std::ranges::find(members, exec::this_rank::rank());
  if (found == members.end()) return {};
  return make_process_group(group, static_cast<int>(found - members.begin()), store, *world_);
}

c10::intrusive_ptr<c10d::ProcessGroup> Communicators::new_local_group(std::span<const int> ranks, std::string_view name,
                                                                      const c10::intrusive_ptr<c10d::Store>& store) {
  const auto group = world_->groups.create_locally(ranks, name);
  const auto found = std::ranges::find(ranks, exec::this_rank::rank());
  return make_process_group(group, static_cast<int>(found - ranks.begin()), store, *world_);
}

void Communicators::release_works() noexcept { world_->release_works(); }

void Communicators::wait_for_works() { world_->wait_for_works(); }

void Communicators::set_label(int rank, const std::string* label) {
  world_->payloads.set_label(rank, exec::this_rank::thread_of_rank(), label);
}

const std::string* Communicators::kept_label(const std::string& text) { return world_->payloads.keep(text); }

const std::string* Communicators::label(int rank) const noexcept {
  return world_->payloads.label(rank, exec::this_rank::thread_of_rank());
}

void Communicators::name_payload(int rank, const at::Tensor& tensor, const std::string& name) {
  world_->payloads.name(rank, tensor, name);
}

void Communicators::forget_payload(int rank, const c10::TensorImpl* tensor) noexcept {
  world_->payloads.forget(rank, tensor);
}

std::vector<PendingOperation> Communicators::pending(int only_of) const { return world_->groups.pending(only_of); }

std::vector<PendingGroup> Communicators::pending_groups() const { return world_->groups.pending_groups(); }

std::vector<UnusedGroups> Communicators::unused_groups() const { return world_->groups.unused_groups(); }

std::vector<UnwaitedCalls> Communicators::unwaited_calls() const { return world_->unwaited.calls(); }

std::vector<ShortMessages> Communicators::short_messages() const { return world_->short_messages.messages(); }
const std::map<std::string, std::set<int>>& Communicators::remarks() const noexcept { return world_->habits.remarks(); }
const std::map<std::string, std::set<int>>& Communicators::notes() const noexcept { return world_->habits.notes(); }
const std::set<std::string>& Communicators::raced_groups() const noexcept { return world_->habits.raced_groups(); }

exec::Wait Communicators::explain_wait(int rank) const {
  for (auto& call : pending(rank)) {
    const bool could_be = !call.waits_for.empty() && !call.gave_up && call.record_id != Event::kNotRecorded;
    if (!could_be) continue;
    return {std::move(call.description), std::move(call.call), std::move(call.waits_for), false,
            exec::Wait::Kind::call};
  }
  return {};
}

void Communicators::lose(int rank, bool connections_break) { world_->groups.lose(rank, connections_break); }

void Communicators::begin_again(int rank) noexcept { world_->begin_again(rank); }

const EventLog& Communicators::events() const noexcept { return world_->log; }

const CommunicatorOptions& Communicators::options() const noexcept { return world_->options; }

}  // namespace rehearse::comm
