// SPDX-License-Identifier: BSD-3-Clause
#include "faulty_fabric.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

namespace rehearse::sim {
namespace {

// The first element becomes NaN; where its type has none, or a bit is asked for, its highest bit below the sign's byte
// flips.
void spoil(const comm::Operation& call, Fault::Corruption with) {
  for (const auto& output : call.outputs) {
    if (!output.defined() || output.layout() != c10::kStrided || output.numel() == 0) continue;
    auto* const bytes = static_cast<std::uint8_t*>(output.data_ptr());
    const auto size = output.element_size();
    if (with == Fault::Corruption::nan && output.scalar_type() == at::kFloat) {
      *reinterpret_cast<float*>(bytes) = std::numeric_limits<float>::quiet_NaN();
    } else if (with == Fault::Corruption::nan && output.scalar_type() == at::kDouble) {
      *reinterpret_cast<double*>(bytes) = std::numeric_limits<double>::quiet_NaN();
    } else {
      bytes[size - 1] ^= 0x40;
    }
    return;
  }
}

}  // namespace

class FaultyFabric::Marked final : public comm::Completion, public exec::Timer {
 public:
  Marked(FaultyFabric& fabric, const comm::Transfer& transfer, comm::Completion& done)
      : fabric_(fabric), transfer_(transfer), done_(done) {}

  std::vector<std::pair<comm::Operation*, Fault::Corruption>> spoilt;
  const comm::Completion& done() const noexcept { return done_; }

  void on_launched() noexcept override { done_.on_launched(); }
  void on_done() noexcept override {
    for (const auto& [call, with] : spoilt) spoil(*call, with);
    comm::Completion& done = done_;
    fabric_.release(*this);
    done.on_done();
  }
  void on_failed(std::exception_ptr why) noexcept override {
    comm::Completion& done = done_;
    fabric_.release(*this);
    done.on_failed(std::move(why));
  }
  void fire() override { fabric_.below_.launch(transfer_, *this); }

 private:
  FaultyFabric& fabric_;
  const comm::Transfer& transfer_;
  comm::Completion& done_;
};

FaultyFabric::FaultyFabric(comm::Fabric& below, exec::TimerQueue& timers, const exec::Clock& clock)
    : below_(below), timers_(timers), clock_(clock) {}

FaultyFabric::~FaultyFabric() {
  for (auto& marked : under_way_) timers_.cancel(marked);
}

void FaultyFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  VirtualDuration by{};
  std::vector<std::pair<comm::Operation*, Fault::Corruption>> spoilt;
  for (auto* const call : transfer.calls) {
    const auto mark = marks_.extract(call);
    if (mark.empty()) continue;
    by = std::max(by, mark.mapped().by);
    if (mark.mapped().with) spoilt.emplace_back(call, *mark.mapped().with);
  }
  if (by == VirtualDuration::zero() && spoilt.empty()) return below_.launch(transfer, done);
  Marked& marked = under_way_.emplace_back(*this, transfer, done);
  marked.spoilt = std::move(spoilt);
  if (by == VirtualDuration::zero()) return below_.launch(transfer, marked);
  timers_.arm(marked, clock_.now() + by);
}

void FaultyFabric::cancel(comm::Completion& done) noexcept {
  const auto found =
      std::find_if(under_way_.begin(), under_way_.end(), [&](const Marked& each) { return &each.done() == &done; });
  if (found == under_way_.end()) return below_.cancel(done);
  timers_.cancel(*found);
  below_.cancel(*found);
  under_way_.erase(found);
}

void FaultyFabric::release(const Marked& marked) noexcept {
  std::erase_if(under_way_, [&](const Marked& each) { return &each == &marked; });
}

}  // namespace rehearse::sim
