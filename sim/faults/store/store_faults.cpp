// SPDX-License-Identifier: BSD-3-Clause
#include "store_faults.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse_internal/exec/this_rank.h>

#include "faults/text/fault_fields.h"
#include "store_calls.h"

namespace rehearse::sim {
namespace {

std::string title(std::string_view call, const std::string& key) { return fmt::format("{} of key \"{}\"", call, key); }

std::string title(std::string_view call, const std::vector<std::string>& keys) {
  return keys.empty() ? std::string(call) : title(call, keys.front());
}

class CutOffObserver final : public exec::Observer {
 public:
  CutOffObserver(std::string_view call, int rank) : call_(call), rank_(rank) {}

 private:
  exec::Wait describe() const override {
    return {fmt::format("store {}: rank {} is cut off from the store of rank {}", call_, rank_, StoreFaults::kHost)};
  }

  const std::string_view call_;
  const int rank_;
};

}  // namespace

StoreFaults::StoreFaults(std::shared_ptr<fakes::StoreState> keys, FaultLedger& ledger, Partitions& partitions)
    : keys_(std::move(keys)), ledger_(&ledger), partitions_(partitions) {
  partitions.when_healed([this] { cut_off_.notify_all(); });
  const auto& plans = ledger.plans();
  const bool any_stale =
      std::ranges::any_of(plans, [](const FaultPlan& plan) { return plan.fault->verb == Fault::Verb::stale_key; });
  if (any_stale) keys_->keep_former_values();
}

void StoreFaults::before(const StoreCall& call) {
  exec::this_rank::make_store_call([&] {
    if (ledger_ == nullptr || !exec::this_rank::is_fiber()) return;
    const int rank = exec::this_rank::rank();
    const auto* const row = find_store_call(call.name);
    ledger_->count_store_call(rank);
    for (std::size_t index = 0; index < ledger_->plans().size(); ++index) {
      const Fault& fault = *ledger_->plans()[index].fault;
      const auto is_its = [&](const std::string& key) { return is_key(key, fault.key); };
      if (!traits_of(fault.verb).of_store || std::ranges::none_of(call.keys, is_its)) continue;
      ++calls_[{index, rank, row->name}];
      ++calls_[{index, rank, ""}];
    }
    meet(row->name, call.keys, rank);
    wait_for_host(rank, row->name, call.timeout);
    if (row->access == StoreAccess::reads) inject(row->name, call.keys);
  });
}

// Fires faults that may happen at any kind of call, such as a crash, if they name this call of the store.
void StoreFaults::meet(std::string_view call, const std::vector<std::string>& keys, int rank) {
  const auto number = ++calls_of_ranks_[{rank, call}];
  for (auto& plan : ledger_->plans()) {
    const Fault& fault = *plan.fault;
    const auto& point = fault.at ? fault.at : fault.call;
    if (traits_of(fault.verb).of_store || !point || point->op != call) continue;
    if (point->number != 0 && point->number != number) continue;
    if (!ledger_->is_open(plan, rank) || !ledger_->draw(plan)) continue;
    const auto name = title(call, keys);
    if (fault.verb == Fault::Verb::fail_op) {
      ledger_->note(plan, rank, name);
      C10_THROW_ERROR(DistStoreError, fmt::format("{} failed: an injected error of the store", name));
    }
    at_call_(plan, rank, name);
  }
}

void StoreFaults::after(const StoreCall& call) {
  if (ledger_ == nullptr || !exec::this_rank::is_fiber()) return;
  if (find_store_call(call.name)->access == StoreAccess::writes) return inject(call.name, call.keys);
  if (call.name != "get" && call.name != "multiGet") return;
  for (std::size_t i = 0; i < call.keys.size(); ++i) {
    if (auto former = stale(call.name, call.keys[i])) call.answers[i] = std::move(*former);
  }
}

// Fires faults that lose keys. Must run while the keys exist.
void StoreFaults::inject(std::string_view call, const std::vector<std::string>& keys) {
  auto& plans = ledger_->plans();
  for (std::size_t index = 0; index < plans.size(); ++index) {
    const Fault& fault = *plans[index].fault;
    if (fault.verb != Fault::Verb::lose_key || !fits(index, call, keys)) continue;
    const auto lost =
        std::ranges::find_if(keys, [&](const std::string& key) { return is_key(key, fault.key) && keys_->has(key); });
    if (lost == keys.end() || !ledger_->draw(plans[index])) continue;
    ledger_->note(plans[index], exec::this_rank::rank(), title(call, *lost));
    lose(fault);
  }
}

bool StoreFaults::fits(std::size_t index, std::string_view call, const std::vector<std::string>& keys) const {
  const FaultPlan& plan = ledger_->plans()[index];
  const Fault& fault = *plan.fault;
  const int rank = exec::this_rank::rank();
  const auto is_its = [&](const std::string& key) { return is_key(key, fault.key); };
  if (!ledger_->is_open(plan, rank) || std::ranges::none_of(keys, is_its)) return false;
  if (!fault.call) return true;
  if (!fault.call->op.empty() && fault.call->op != call) return false;
  if (fault.call->number == 0) return true;
  const auto* const row = find_store_call(fault.call->op);
  const auto made = calls_.find({index, rank, row == nullptr ? std::string_view() : row->name});
  return made != calls_.end() && made->second == fault.call->number;
}

std::optional<StoreCall::Value> StoreFaults::stale(std::string_view call, const std::string& key) {
  const auto* const former = keys_->former(key);
  const int rank = exec::this_rank::rank();
  auto& plans = ledger_->plans();
  for (std::size_t index = 0; index < plans.size(); ++index) {
    if (plans[index].fault->verb != Fault::Verb::stale_key || !fits(index, call, {key})) continue;
    if (former == nullptr) {
      plans[index].targets[rank].nearly.refuse_its_kind(
          fmt::format("{} came when the key had no earlier value", title(call, key)));
      continue;
    }
    if (!ledger_->draw(plans[index])) continue;
    ledger_->note(plans[index], rank, title(call, key));
    return *former;
  }
  return std::nullopt;
}

bool StoreFaults::lose(const Fault& fault) {
  bool any = false;
  for (const auto& key : keys_->keys()) {
    if (is_key(key, fault.key)) any |= keys_->lose(key);
  }
  return any;
}

void StoreFaults::wait_for_host(int rank, std::string_view call, std::chrono::milliseconds timeout) {
  const auto is_cut_off = [&] { return partitions_.stops(rank, kHost) || partitions_.stops(kHost, rank); };
  if (!is_cut_off()) return;
  const CutOffObserver observer(call, rank);
  std::optional<VirtualTime> deadline;
  if (timeout != c10d::Store::kNoTimeout) deadline = later(exec::this_rank::now(), timeout);
  while (is_cut_off()) {
    if (cut_off_.wait(observer, deadline) == exec::WaitResult::notified || !is_cut_off()) continue;
    exec::this_rank::note_given_up(observer);
    C10_THROW_ERROR(DistStoreError, fmt::format("wait timeout after {}ms: {}", timeout.count(), observer.wait().call));
  }
}

}  // namespace rehearse::sim
