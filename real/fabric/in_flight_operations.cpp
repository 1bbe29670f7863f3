// SPDX-License-Identifier: BSD-3-Clause
#include "in_flight_operations.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/native_scope.h>

#include "nccl/nccl_error.h"

namespace rehearse::real {
namespace {

// Only every 64th poll also asks NCCL for errors of the communicators, because this costs more than asking a device.
constexpr std::uint64_t kPollsPerHealthCheck = 64;

// The error that all ranks of a transfer receive.
std::exception_ptr failed_together(const InFlightOperation& operation, const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const TimeoutError&) {
    return why;
  } catch (const std::exception& error) {
    const auto& group = operation.comms().group();
    return std::make_exception_ptr(CommError(fmt::format("{}: {}", operation.title(), error.what()), group.name,
                                             operation.transfer().sequence, group.ranks));
  }
}

bool contains(const std::vector<const GroupComms*>& groups, const GroupComms& comms) {
  return std::ranges::find(groups, &comms) != groups.end();
}

// The memory of a set of dense tensors. overlap() takes time in proportion to the number of added tensors.
class MemoryRanges {
 public:
  void add(std::span<const at::Tensor> tensors) {
    for (const auto& tensor : tensors) {
      if (tensor.nbytes() > 0) ranges_.push_back(range_of(tensor));
    }
  }

  bool overlap(std::span<const at::Tensor> tensors) const {
    return std::ranges::any_of(tensors, [this](const at::Tensor& tensor) {
      const auto [begin, end] = range_of(tensor);
      return std::ranges::any_of(ranges_, [&](const auto& range) { return begin < range.second && range.first < end; });
    });
  }

 private:
  using Range = std::pair<std::uintptr_t, std::uintptr_t>;

  static Range range_of(const at::Tensor& tensor) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
    return {begin, begin + tensor.nbytes()};
  }

  std::vector<Range> ranges_;
};

}  // namespace

InFlightOperations::InFlightOperations(std::shared_ptr<NcclApi> nccl, exec::Clock& clock,
                                       std::chrono::milliseconds init_limit)
    : nccl_(std::move(nccl)), clock_(clock), init_limit_(init_limit) {}

std::vector<GroupComms*> InFlightOperations::groups_ready() const {
  std::vector<GroupComms*> groups;
  for (const auto& operation : ready_) {
    if (std::ranges::find(groups, &operation.comms()) == groups.end()) groups.push_back(&operation.comms());
  }
  return groups;
}

// Makes the communicators of each group that has ready operations. If this fails for a group, only that group fails.
void InFlightOperations::require_comms() noexcept {
  for (auto* const comms : groups_ready()) {
    try {
      const exec::NativeScope native;
      comms->require(init_limit_);
    } catch (...) {
      fail(*comms, std::current_exception());
    }
  }
}

void InFlightOperations::give_to_nccl(std::deque<InFlightOperation>& operations) {
  const exec::NativeScope native;
  for (auto& operation : operations) operation.begin();
  for (std::size_t from = 0; from < operations.size();) from = give_together(operations, from);
  for (auto& operation : operations) operation.end(clock_.now());
}

// Gives operations from index `from` on to NCCL in one group of calls. Returns where the next group must begin: at the
// first transfer that shares memory with an earlier one. A stream would run two such transfers one after the other, but
// within a group NCCL may run them at the same time.
std::size_t InFlightOperations::give_together(const std::deque<InFlightOperation>& operations, std::size_t from) {
  MemoryRanges taken;
  NcclGroup together(*nccl_);
  std::size_t next = from;
  for (; next < operations.size(); ++next) {
    std::vector<at::Tensor> tensors;
    operations[next].collect(tensors);
    if (next > from && taken.overlap(tensors)) break;
    taken.add(tensors);
    operations[next].issue(*nccl_);
  }
  together.end();
  return next;
}

bool InFlightOperations::launch_ready() noexcept {
  if (ready_.empty()) return false;
  require_comms();
  // Move them out first, because reporting may make more operations ready.
  auto operations = std::exchange(ready_, {});
  std::exception_ptr failure;
  try {
    give_to_nccl(operations);
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<comm::Completion*> completion;
  std::vector<GroupComms*> groups;
  for (auto& operation : operations) {
    if (!operation.is_barrier()) completion.push_back(&operation.completion());
    groups.push_back(&operation.comms());
    launched_.push_back(std::move(operation));
  }
  if (failure != nullptr) {
    // Fail all groups, because NCCL says neither which call failed nor which of the other calls it has taken.
    for (auto* const comms : groups) fail(*comms, failure);
  } else {
    for (auto* const each : completion) each->on_launched();
  }
  return true;
}

bool InFlightOperations::tell_ended() noexcept {
  bool any = false;
  const bool look_behind = ++polls_ % kPollsPerHealthCheck == 0;
  // If an operation is not over, later ones on the same group's streams are not over either.
  std::vector<const GroupComms*> busy;
  for (std::size_t i = 0; i < launched_.size();) {
    InFlightOperation& operation = launched_[i];
    if (contains(busy, operation.comms())) {
      ++i;
    } else if (operation.over()) {
      any = true;
      auto& completion = operation.completion();
      const bool is_barrier = operation.is_barrier();
      launched_.erase(launched_.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_barrier) completion.on_launched();
      completion.on_done();
    } else {
      try {
        require_well(operation, look_behind);
        busy.push_back(&operation.comms());
        ++i;
      } catch (...) {
        fail(operation.comms(), std::current_exception());
        return true;
      }
    }
  }
  return any;
}

void InFlightOperations::require_well(const InFlightOperation& operation, bool look_behind) const {
  if (const auto failure = operation.failure()) std::rethrow_exception(failure);
  if (look_behind) operation.comms().require_healthy();
  if (clock_.now() < operation.deadline()) return;
  const auto& group = operation.comms().group();
  throw TimeoutError(
      fmt::format("{} was launched on all its devices and is not done within {} ms: a device hangs, or is "
                  "busy with something else",
                  operation.title(), operation.transfer().calls.front()->timeout.count()),
      group.name, operation.transfer().sequence, group.ranks);
}

std::vector<InFlightOperation> InFlightOperations::take(const GroupComms& comms) {
  std::vector<InFlightOperation> taken;
  for (auto* const from : {&launched_, &ready_}) {
    const auto others = std::stable_partition(
        from->begin(), from->end(), [&](const InFlightOperation& operation) { return &operation.comms() != &comms; });
    std::move(others, from->end(), std::back_inserter(taken));
    from->erase(others, from->end());
  }
  return taken;
}

void InFlightOperations::fail(GroupComms& comms, const std::exception_ptr& why) noexcept {
  const auto failed = take(comms);
  std::vector<at::Tensor> under_way;
  for (const auto& operation : failed) operation.collect(under_way);
  {
    const exec::NativeScope native;
    comms.abort(std::move(under_way));
  }
  for (const auto& operation : failed) operation.completion().on_failed(failed_together(operation, why));
}

void InFlightOperations::cancel(const comm::Completion& completion, std::chrono::milliseconds limit) noexcept {
  const auto is_it = [&completion](const InFlightOperation& operation) {
    return &operation.completion() == &completion;
  };
  std::erase_if(ready_, is_it);
  const auto found = std::ranges::find_if(launched_, is_it);
  if (found == launched_.end()) return;
  InFlightOperation operation = std::move(*found);
  launched_.erase(found);
  const exec::NativeScope native;
  const bool may_end = !operation.comms().aborted();
  for (auto naps = limit.count(); may_end && naps > 0 && !operation.over() && operation.failure() == nullptr; --naps) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (operation.over()) return;
  std::vector<at::Tensor> under_way;
  operation.collect(under_way);
  operation.comms().abort(std::move(under_way));
}

}  // namespace rehearse::real
