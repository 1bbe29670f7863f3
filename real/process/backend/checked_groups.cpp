// SPDX-License-Identifier: BSD-3-Clause
// The functions of CheckedBackend that concern the group, or several calls on it.
#include <algorithm>
#include <exception>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/coalescing.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/group_arguments.h"
#include "comm/backend/derived_group.h"
#include "process/backend/checked_backend.h"

namespace rehearse::real {
namespace {

// Combines several Works into one: the Works of several calls, or the Works of the back end below.
using WorkList = comm::SeveralWorks<c10d::Work>;
constexpr int kUnknownRank = -1;

}  // namespace

void CheckedBackend::name_payload(const at::Tensor& tensor, const std::string& name) {
  services_.journal.name_payload(tensor, name);
}

void CheckedBackend::forget_payload(const c10::TensorImpl* tensor) noexcept {
  services_.journal.forget_payload(tensor);
}

void CheckedBackend::extend_timeout_once(std::chrono::milliseconds duration) {
  comm::check_extension(duration);
  extension_.add(duration);
}

void CheckedBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  auto call = make(monitored_barrier(options));
  call.tag = comm::Operation::kMonitoredBarrier;
  const bool has_no_time = is_barrier_without_time(options, wait_all_ranks);
  const BarrierGivenUp given_up{key_, collectives_ + 1, wait_all_ranks, has_no_time};
  if (has_no_time) services_.session.give_up(given_up);
  const auto to = below_.host;
  const auto work = begin(std::move(call), [=](int) { return to->barrier(); }, true);
  try {
    work->wait();
  } catch (const TimeoutError&) {
    if (rank_ != 0 || has_no_time) throw;
    // The coordinator knows which ranks are missing. If all have arrived by now, the barrier passes.
    services_.session.give_up(given_up);
    work->wait_for_end();
  }
}

void CheckedBackend::startCoalescing() {
  require_start_of_coalescing();
  coalesced_ = c10::make_intrusive<WorkList>(kUnknownRank);
}

auto CheckedBackend::endCoalescing() -> WorkPtr {
  require_end_of_coalescing();
  auto list = std::exchange(coalesced_, nullptr);
  auto gathered = std::exchange(gathered_, {});
  if (gathered.empty()) return {};
  auto whole = make({c10d::OpType::COALESCED});
  std::vector<CarryOut> parts;
  for (auto& [call, carry_out] : gathered) {
    if (comm::is_point_to_point(call.type)) continue;
    comm::add_part(whole, call);
    parts.push_back(std::move(carry_out));
  }
  std::vector<WorkPtr> works;
  if (!parts.empty()) {
    works.push_back(begin(
        std::move(whole),
        [parts](int) -> WorkPtr {
          std::vector<WorkPtr> below;
          for (const auto& part : parts) below.push_back(part(-1));
          auto all = c10::make_intrusive<WorkList>(kUnknownRank);
          all->take(std::move(below));
          return all;
        },
        services_.checks));
  }
  for (auto& [call, carry_out] : gathered) {
    if (comm::is_point_to_point(call.type)) {
      works.push_back(begin(std::move(call), std::move(carry_out), services_.checks));
    }
  }
  list->take(std::move(works));
  return list;
}

GroupMade RankServices::next_derived(std::string call, const std::string& name, const std::vector<int>& ranks) {
  const auto of_ranks = comm::name_with_ranks(name, ranks);
  const auto number = derived[of_ranks]++;
  return {std::move(call), number, name, name, comm::numbered_name(of_ranks, number), ranks};
}

BackendsBelow RankServices::connect(const c10::intrusive_ptr<c10d::Store>& group_store, int rank, int size) const {
  try {
    return make_below(group_store, rank, size);
  } catch (...) {
    session.below().throw_failure(std::current_exception());
  }
}

auto CheckedBackend::derive(const char* call, const std::vector<int>& ranks, const Options& options) -> BackendPtr {
  const auto& name = options.group_name;
  std::vector<int> global_ranks;
  for (const int rank : ranks) global_ranks.push_back(group_.global_rank(rank));
  const auto made = services_.next_derived(call, name, global_ranks);
  services_.session.make(made, true);
  const auto group_rank = static_cast<int>(std::ranges::find(ranks, rank_) - ranks.begin());
  const auto store = c10::make_intrusive<c10d::PrefixStore>(made.key, services_.store);
  auto below = services_.connect(store, group_rank, static_cast<int>(ranks.size()));
  auto backend = c10::make_intrusive<CheckedBackend>(services_, services_.journal.add_group(name, global_ranks),
                                                     made.key, group_rank, std::move(below), options.timeout);
  backend->setGroupUid(name);
  backend->setGroupDesc(options.group_desc);
  return backend;
}

auto CheckedBackend::split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                           const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  comm::check_members("split", ranks, size_);
  if (std::ranges::find(ranks, rank_) == ranks.end()) return {};
  return derive("split", ranks, *options_or_named(options, comm::derived_name(group_.name, "split", ranks)));
}

auto CheckedBackend::shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                            const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  const auto stay = comm::ranks_that_stay(ranks_to_exclude, rank_, size_);
  TORCH_CHECK_VALUE(!comm::is_abort(flags),
                    "rehearse::shrink: calls that are under way cannot be aborted where ranks are processes: wait for "
                    "them, and leave the flag out");
  return derive("shrink", stay, *options_or_named(options, comm::derived_name(group_.name, "shrink", stay)));
}

auto CheckedBackend::companion(const std::string& name) -> BackendPtr {
  auto& own = companions_[name];
  if (own == nullptr) {
    auto named = options_or_named(nullptr, name);
    named->group_desc = name;
    own = derive("companion", ranks_below(size_), *named);
  }
  return own;
}

}  // namespace rehearse::real
