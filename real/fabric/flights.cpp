// SPDX-License-Identifier: BSD-3-Clause
#include "flights.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/native_scope.h>

#include "memory_ranges.h"
#include "nccl/nccl_error.h"

namespace rehearse::real {
namespace {

// How often a look at what is under way asks NCCL, too: it costs more than the question to a device.
constexpr std::uint64_t kLooksToHealth = 64;

// The error that all ranks of a transfer meet.
std::exception_ptr failed_together(const Flight& flight, const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const TimeoutError&) {
    return why;
  } catch (const std::exception& error) {
    const auto& group = flight.comms().group();
    return std::make_exception_ptr(CommError(fmt::format("{}: {}", flight.title(), error.what()), group.name,
                                             flight.transfer().sequence, group.ranks));
  }
}

bool contains(const std::vector<const GroupComms*>& groups, const GroupComms& comms) {
  return std::find(groups.begin(), groups.end(), &comms) != groups.end();
}

}  // namespace

Flights::Flights(std::shared_ptr<NcclApi> nccl, exec::Clock& clock, std::chrono::milliseconds init_limit)
    : nccl_(std::move(nccl)), clock_(clock), init_limit_(init_limit) {}

std::vector<GroupComms*> Flights::groups_ready() const {
  std::vector<GroupComms*> groups;
  for (const auto& flight : ready_) {
    if (std::find(groups.begin(), groups.end(), &flight.comms()) == groups.end()) groups.push_back(&flight.comms());
  }
  return groups;
}

// Makes the communicators of each group that is ready. A group without them fails alone.
void Flights::require_comms() noexcept {
  for (auto* const comms : groups_ready()) {
    try {
      const exec::NativeScope native;
      comms->require(init_limit_);
    } catch (...) {
      fail(*comms, std::current_exception());
    }
  }
}

void Flights::give_to_nccl(std::deque<Flight>& flights) {
  const exec::NativeScope native;
  for (auto& flight : flights) flight.begin();
  for (std::size_t from = 0; from < flights.size();) from = give_together(flights, from);
  for (auto& flight : flights) flight.end(clock_.now());
}

// In one group of NCCL's, from `from` on, and returns where the next one begins: at a transfer whose memory an earlier
// one has too. A stream would carry them out one after the other; within a group NCCL need not.
std::size_t Flights::give_together(const std::deque<Flight>& flights, std::size_t from) {
  MemoryRanges taken;
  NcclGroup together(*nccl_);
  std::size_t next = from;
  for (; next < flights.size(); ++next) {
    std::vector<at::Tensor> tensors;
    flights[next].collect(tensors);
    if (next > from && taken.overlap(tensors)) break;
    taken.add(tensors);
    flights[next].issue(*nccl_);
  }
  together.end();
  return next;
}

bool Flights::launch_ready() noexcept {
  if (ready_.empty()) return false;
  require_comms();
  // Whoever is told may make more ready.
  auto flights = std::exchange(ready_, {});
  std::exception_ptr failure;
  try {
    give_to_nccl(flights);
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<comm::Completion*> told;
  std::vector<GroupComms*> groups;
  for (auto& flight : flights) {
    if (!flight.is_barrier()) told.push_back(&flight.told());
    groups.push_back(&flight.comms());
    flying_.push_back(std::move(flight));
  }
  if (failure != nullptr) {
    // NCCL does not say whose call it was, nor which of the others it has taken.
    for (auto* const comms : groups) fail(*comms, failure);
  } else {
    for (auto* const each : told) each->on_launched();
  }
  return true;
}

bool Flights::tell_ended() noexcept {
  bool any = false;
  const bool look_behind = ++looks_ % kLooksToHealth == 0;
  // What was launched on a group's streams behind something that is not over is not over either.
  std::vector<const GroupComms*> busy;
  for (std::size_t i = 0; i < flying_.size();) {
    Flight& flight = flying_[i];
    if (contains(busy, flight.comms())) {
      ++i;
    } else if (flight.over()) {
      any = true;
      auto& told = flight.told();
      const bool is_barrier = flight.is_barrier();
      flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_barrier) told.on_launched();
      told.on_done();
    } else {
      try {
        require_well(flight, look_behind);
        busy.push_back(&flight.comms());
        ++i;
      } catch (...) {
        fail(flight.comms(), std::current_exception());
        return true;
      }
    }
  }
  return any;
}

void Flights::require_well(const Flight& flight, bool look_behind) const {
  if (const auto failure = flight.failure()) std::rethrow_exception(failure);
  if (look_behind) flight.comms().require_healthy();
  if (clock_.now() < flight.deadline()) return;
  const auto& group = flight.comms().group();
  throw TimeoutError(
      fmt::format("{} was launched on all its devices and is not done within {} ms: a device hangs, or is "
                  "busy with something else",
                  flight.title(), flight.transfer().calls.front()->timeout.count()),
      group.name, flight.transfer().sequence, group.ranks);
}

std::vector<Flight> Flights::take(const GroupComms& comms) {
  std::vector<Flight> taken;
  for (auto* const from : {&flying_, &ready_}) {
    const auto others = std::stable_partition(from->begin(), from->end(),
                                              [&](const Flight& flight) { return &flight.comms() != &comms; });
    std::move(others, from->end(), std::back_inserter(taken));
    from->erase(others, from->end());
  }
  return taken;
}

void Flights::fail(GroupComms& comms, const std::exception_ptr& why) noexcept {
  const auto failed = take(comms);
  std::vector<at::Tensor> under_way;
  for (const auto& flight : failed) flight.collect(under_way);
  {
    const exec::NativeScope native;
    comms.abort(std::move(under_way));
  }
  for (const auto& flight : failed) flight.told().on_failed(failed_together(flight, why));
}

void Flights::cancel(const comm::Completion& told, std::chrono::milliseconds limit) noexcept {
  const auto is_it = [&told](const Flight& flight) { return &flight.told() == &told; };
  std::erase_if(ready_, is_it);
  const auto found = std::find_if(flying_.begin(), flying_.end(), is_it);
  if (found == flying_.end()) return;
  Flight flight = std::move(*found);
  flying_.erase(found);
  const exec::NativeScope native;
  const bool may_end = !flight.comms().aborted();
  for (auto naps = limit.count(); may_end && naps > 0 && !flight.over() && flight.failure() == nullptr; --naps) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (flight.over()) return;
  std::vector<at::Tensor> under_way;
  flight.collect(under_way);
  flight.comms().abort(std::move(under_way));
}

}  // namespace rehearse::real
