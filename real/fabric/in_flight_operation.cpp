// SPDX-License-Identifier: BSD-3-Clause
#include "in_flight_operation.h"

#include <algorithm>

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <rehearse_internal/comm/title.h>

#include "nccl/nccl_calls.h"

namespace rehearse::real {
namespace {

// Events that can be asked for their time cost the device more.
c10::EventFlag flag_of(bool timed) noexcept {
  return timed ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT;
}

cudaStream_t native_handle(c10::Stream stream) {
  const c10::impl::VirtualGuardImpl guard(stream.device_type());
  return static_cast<cudaStream_t>(guard.getStreamNativeHandle(stream));
}

}  // namespace

DeviceCall::DeviceCall(int rank, c10::Stream caller, c10::Stream runs_on, bool timed)
    : rank_(rank),
      caller_(caller),
      runs_on_(runs_on),
      timed_(timed),
      before_(caller.device_type()),
      begin_(caller.device_type(), flag_of(timed)),
      after_(caller.device_type(), flag_of(timed)) {
  before_.record(caller_);
}

void DeviceCall::begin() {
  if (runs_on_ != caller_) before_.block(runs_on_);
  if (timed_) begin_.record(runs_on_);
}

void DeviceCall::end() {
  after_.record(runs_on_);
  launched_ = true;
}

bool DeviceCall::query(const c10::Event& event) noexcept {
  if (failure_ != nullptr) return false;
  try {
    return event.query();
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }
}

bool DeviceCall::done() noexcept {
  if (!done_) done_ = launched_ && query(after_);
  return done_;
}

bool DeviceCall::reached() noexcept { return query(before_); }

void DeviceCall::order() noexcept {
  if (failure_ != nullptr || done_) return;
  try {
    const c10::impl::VirtualGuardImpl guard(caller_.device_type());
    const auto current = guard.getStream(caller_.device());
    if (current != runs_on_) after_.block(current);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

std::optional<float> DeviceCall::milliseconds() noexcept {
  if (!timed_ || !done()) return std::nullopt;
  try {
    return static_cast<float>(begin_.elapsedTime(after_));
  } catch (...) {
    failure_ = std::current_exception();
    return std::nullopt;
  }
}

InFlightOperation::InFlightOperation(const comm::Transfer& transfer, comm::Completion& completion, GroupComms& comms)
    : transfer_(transfer), completion_(&completion), comms_(&comms) {
  for (const auto* call : transfer.calls) {
    auto* const end = static_cast<DeviceCall*>(call->end.get());
    ends_.push_back(c10::intrusive_ptr<DeviceCall>::reclaim_copy(end));
  }
}

void InFlightOperation::begin() {
  if (is_barrier()) return;
  for (const auto& end : ends_) end->begin();
}

void InFlightOperation::issue(NcclApi& nccl) const {
  if (is_barrier()) return;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const auto& end = *ends_[i];
    const c10::DeviceGuard on(end.stream().device());
    // A message has two calls: first the sender's, then the receiver's.
    const RankOnDevice where{.rank = end.rank(),
                             .ranks = comms_->group().size(),
                             .comm = comms_->of(end.rank()),
                             .stream = native_handle(end.stream()),
                             .sender = ends_.front()->rank()};
    real::issue(nccl, where, *transfer_.calls[i]);
  }
}

void InFlightOperation::end(VirtualTime now) {
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (!is_barrier()) ends_[i]->end();
    const auto timeout = transfer_.calls[i]->timeout;
    if (timeout.count() > 0) deadline_ = std::min(deadline_, later(now, timeout));
  }
}

bool InFlightOperation::over() noexcept {
  return std::ranges::all_of(ends_, [this](const auto& end) { return is_barrier() ? end->reached() : end->done(); });
}

std::exception_ptr InFlightOperation::failure() const noexcept {
  for (const auto& end : ends_) {
    if (end->failure() != nullptr) return end->failure();
  }
  return nullptr;
}

// False if nobody waits for the call and it is small: such a call gains from going out together with others.
bool InFlightOperation::wanted_at_once() const noexcept {
  constexpr std::size_t kLarge = std::size_t{64} << 10;
  const auto& call = *transfer_.calls.front();
  if (!call.async_op) return true;
  std::size_t bytes = 0;
  for (const auto& tensor : call.inputs) bytes += tensor.nbytes();
  return bytes >= kLarge;
}

void InFlightOperation::collect(std::vector<at::Tensor>& tensors) const {
  for (const auto* call : transfer_.calls) {
    tensors.insert(tensors.end(), call->inputs.begin(), call->inputs.end());
    tensors.insert(tensors.end(), call->outputs.begin(), call->outputs.end());
  }
}

std::string InFlightOperation::title() const {
  return comm::short_title(comm::name_of(transfer_.type), transfer_.sequence, comms_->group().name);
}

}  // namespace rehearse::real
