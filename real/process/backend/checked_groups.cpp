// SPDX-License-Identifier: BSD-3-Clause
// The calls of CheckedBackend that are about the group, or about more than one call.
#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse_internal/comm/coalescing.h>

#include "comm/backend/derived_group.h"
#include "comm/backend/refuse_in_capture.h"
#include "process/backend/checked_backend.h"

namespace rehearse::real {
namespace {

// Several works as one: of calls, or of what carries them out below. No rank is known of those.
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

void CheckedBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool) {
  TORCH_CHECK(coalesced_ == nullptr, "rehearse::monitoredBarrier: it blocks, so it cannot be coalesced");
  const bool limited = rank_ == 0 && options.timeout.count() != 0;
  auto call = make({c10d::OpType::BARRIER, limited ? options.timeout : c10d::kUnsetTimeout, /*async_op=*/false});
  call.tag = comm::Operation::kMonitoredBarrier;
  const auto to = below_.host;
  begin(std::move(call), [=](int) { return to->barrier(); })->wait();
}

void CheckedBackend::startCoalescing() {
  comm::refuse_in_capture("startCoalescing()");
  TORCH_CHECK(coalesced_ == nullptr, "rehearse::startCoalescing: called twice without endCoalescing()");
  coalesced_ = c10::make_intrusive<WorkList>(kUnknownRank);
}

auto CheckedBackend::endCoalescing() -> WorkPtr {
  TORCH_CHECK(coalesced_ != nullptr, "rehearse::endCoalescing: there was no startCoalescing()");
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
    works.push_back(begin(std::move(whole), [parts](int) -> WorkPtr {
      std::vector<WorkPtr> below;
      for (const auto& part : parts) below.push_back(part(-1));
      auto all = c10::make_intrusive<WorkList>(kUnknownRank);
      all->take(std::move(below));
      return all;
    }));
  }
  for (auto& [call, carry_out] : gathered) {
    if (comm::is_point_to_point(call.type)) works.push_back(begin(std::move(call), std::move(carry_out)));
  }
  list->take(std::move(works));
  return list;
}

BackendsBelow RankServices::connect(const c10::intrusive_ptr<c10d::Store>& group_store, int rank, int size) const {
  try {
    return make_below(group_store, rank, size);
  } catch (...) {
    session.throw_failure(std::current_exception());
  }
}

auto CheckedBackend::derive(const char* call, const std::vector<int>& ranks, const std::string& name,
                            std::chrono::milliseconds timeout) -> BackendPtr {
  std::vector<int> global_ranks;
  for (const int rank : ranks) global_ranks.push_back(group_.global_rank(rank));
  const auto number = services_.derived[name]++;
  const auto key = number == 0 ? name : fmt::format("{}#{}", name, number + 1);
  services_.session.make(GroupMade{call, number, name, name, key, global_ranks}, true);
  const auto place = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
  const auto store = c10::make_intrusive<c10d::PrefixStore>(key, services_.store);
  auto below = services_.connect(store, place, static_cast<int>(ranks.size()));
  auto backend = c10::make_intrusive<CheckedBackend>(services_, services_.journal.add_group(name, global_ranks), key,
                                                     place, std::move(below), timeout);
  backend->setGroupUid(name);
  backend->setGroupDesc(name);
  return backend;
}

auto CheckedBackend::split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                           const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  comm::check_members("split", ranks, size_);
  if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) return {};
  const bool named = options != nullptr && !options->group_name.empty();
  const auto name = named ? options->group_name : comm::derived_name(group_.name, "split", ranks);
  auto made = derive("split", ranks, name, options != nullptr ? options->timeout : timeout());
  if (options != nullptr) made->setGroupDesc(options->group_desc);
  return made;
}

auto CheckedBackend::shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                            const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  const auto stay = comm::ranks_that_stay(ranks_to_exclude, rank_, size_);
  TORCH_CHECK_VALUE(!comm::is_abort(flags),
                    "rehearse::shrink: calls that are under way cannot be aborted where ranks are processes: wait for "
                    "them, and leave the flag out");
  const bool named = options != nullptr && !options->group_name.empty();
  const auto name = named ? options->group_name : comm::derived_name(group_.name, "shrink", stay);
  auto made = derive("shrink", stay, name, options != nullptr ? options->timeout : timeout());
  if (options != nullptr) made->setGroupDesc(options->group_desc);
  return made;
}

auto CheckedBackend::companion(const std::string& name) -> BackendPtr {
  auto& own = companions_[name];
  if (own == nullptr) {
    std::vector<int> all;
    for (int rank = 0; rank < size_; ++rank) all.push_back(rank);
    own = derive("companion", all, name, timeout());
  }
  return own;
}

}  // namespace rehearse::real
