// SPDX-License-Identifier: BSD-3-Clause
#include "checked_backend.h"

#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <rehearse/comm/event_log.h>

#include <rehearse_internal/comm/title.h>

namespace rehearse::real {
namespace {

const at::Tensor* first_on_device(const comm::Operation& call) {
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      if (!tensor.device().is_cpu()) return &tensor;
    }
  }
  return nullptr;
}

// Returns a CarryOut that uses the stream that is current now, so that the call comes after what the caller has
// launched there.
CarryOut on_callers_stream(const comm::Operation& call, CarryOut carry_out) {
  const auto* const tensor = first_on_device(call);
  if (tensor == nullptr) return carry_out;
  const auto stream = c10::impl::VirtualGuardImpl(tensor->device().type()).getStream(tensor->device());
  return [stream, carry_out = std::move(carry_out)](int source) {
    const c10::StreamGuard guard(stream);
    return carry_out(source);
  };
}

}  // namespace

CheckedBackend::CheckedBackend(RankServices& services, comm::GroupIdentity group, std::string key, int rank,
                               BackendsBelow below, std::chrono::milliseconds timeout)
    : DescribedBackend(rank, group.size(), timeout),
      services_(services),
      group_(std::move(group)),
      key_(std::move(key)),
      below_(std::move(below)) {}

// Like destroy_process_group(), this waits for what is still under way on a device.
CheckedBackend::~CheckedBackend() {
  try {
    if (below_.device != nullptr) below_.device->shutdown();
  } catch (const c10::Error&) {
    // A call that was still under way has failed. Its wait() reports that, so the exception adds nothing.
  }
}

comm::Operation CheckedBackend::make(const Called& called) {
  require_allowed(called.type);
  comm::Operation call;
  call.type = called.type;
  call.async_op = called.async_op;
  call.timeout = timeout_of(called);
  if (call.timeout.count() > 0) call.timeout += extension_.of_next();
  return call;
}

auto CheckedBackend::below(const comm::Operation& call) const -> BackendPtr {
  if (first_on_device(call) == nullptr || below_.device == nullptr) return below_.host;
  return below_.device;
}

c10::intrusive_ptr<CheckedWork> CheckedBackend::begin(comm::Operation call, CarryOut carry_out, bool waits_for_peers) {
  services_.session.require_running();
  const bool message = comm::is_point_to_point(call.type);
  const bool limited = call.timeout.count() > 0;
  const auto sequence = message ? ++messages_ : ++collectives_;
  const auto number = static_cast<std::uint32_t>(collectives_ + messages_);
  const auto entry = services_.journal.record(call, group_, sequence, number);
  auto made = CallMade{key_, sequence, facts_of(call)};
  carry_out = on_callers_stream(call, std::move(carry_out));
  auto title = comm::title_of(call, sequence, group_);
  auto work = c10::make_intrusive<CheckedWork>(services_.session, services_.journal, rank_, std::move(call),
                                               std::move(title), entry, sequence, std::move(carry_out));
  if (limited) extension_.begun(work);
  if (waits_for_peers && size_ > 1) {
    services_.session.make(made, work->awaited());
  } else {
    work->go(-1);
  }
  return work;
}

auto CheckedBackend::call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) -> WorkPtr {
  auto made = make(called);
  describe(made);
  CarryOut carry_out = [to = below(made), again = replay()](int source) { return again(*to, source); };
  if (coalesced_ == nullptr) return begin(std::move(made), std::move(carry_out), services_.checks);
  gathered_.push_back({std::move(made), std::move(carry_out)});
  return coalesced_;
}

}  // namespace rehearse::real
