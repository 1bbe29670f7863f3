// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/fakes/fake_fabric.h>

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/check.h>

#include "coalesced.h"
#include "workspace.h"

namespace rehearse::fakes {

// A launched transfer that waits for the end of its time.
class FakeFabric::Pending final : public exec::Timer {
 public:
  explicit Pending(FakeFabric& fabric) : fabric_(fabric) {}

  const comm::Transfer* transfer = nullptr;
  comm::Completion* done = nullptr;
  std::size_t index = 0;  // index in the pool

 private:
  void fire() override { fabric_.finish(*this); }

  FakeFabric& fabric_;
};

FakeFabric::FakeFabric(exec::TimerQueue& timers, exec::Clock& clock, const CostModel& costs)
    : timers_(timers), clock_(clock), costs_(costs), workspace_(std::make_unique<Workspace>()) {}

FakeFabric::~FakeFabric() {
  for (std::size_t i = 0; i < in_flight_; ++i) timers_.cancel(*pool_[i]);
}

std::size_t FakeFabric::pending() const noexcept { return in_flight_; }

void FakeFabric::ask_before_moving(MoveInterceptor& interceptor) noexcept {
  REHEARSE_CHECK(interceptor_ == nullptr, in_flight_);
  interceptor_ = &interceptor;
}

bool FakeFabric::move(const comm::Transfer& transfer) {
  if (interceptor_ != nullptr && !interceptor_->may_move(transfer)) return false;
  if (!transfer.calls.front()->parts.empty()) {
    move_parts(transfer, *workspace_);
  } else {
    move_call(transfer, *workspace_);
  }
  return true;
}

void FakeFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  const auto due = clock_.now() + std::max(costs_.duration(transfer), VirtualDuration::zero());
  if (due <= clock_.now()) {
    if (move(transfer)) done.on_complete();
    return;
  }
  if (in_flight_ == pool_.size()) {
    pool_.push_back(std::make_unique<Pending>(*this));
    pool_.back()->index = in_flight_;
  }
  Pending& pending = *pool_[in_flight_];
  timers_.arm(pending, due);
  ++in_flight_;
  pending.transfer = &transfer;
  pending.done = &done;
}

// Keeps the transfers in flight at the front of the pool.
void FakeFabric::release(Pending& pending) noexcept {
  const std::size_t index = pending.index;
  REHEARSE_CHECK(index < in_flight_ && pool_[index].get() == &pending, index, in_flight_);
  --in_flight_;
  std::swap(pool_[index], pool_[in_flight_]);
  pool_[index]->index = index;
  pool_[in_flight_]->index = in_flight_;
}

void FakeFabric::finish(Pending& pending) {
  const comm::Transfer& transfer = *pending.transfer;
  comm::Completion& done = *pending.done;
  // Release first, because on_complete() may launch the next transfer.
  release(pending);
  if (move(transfer)) done.on_complete();
}

void FakeFabric::cancel(comm::Completion& done) noexcept {
  for (std::size_t i = 0; i < in_flight_; ++i) {
    if (pool_[i]->done != &done) continue;
    timers_.cancel(*pool_[i]);
    release(*pool_[i]);
    return;
  }
}

}  // namespace rehearse::fakes
