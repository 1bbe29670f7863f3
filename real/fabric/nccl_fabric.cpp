// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_fabric.h"

#include <algorithm>
#include <array>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <rehearse/comm/errors.h>

#include "nccl/nccl_calls.h"

namespace rehearse::real {
namespace {

bool on_device(const at::Tensor& tensor) { return tensor.device().is_cuda(); }

bool on_device(const comm::Operation& call) {
  return std::ranges::any_of(call.inputs, [](const auto& each) { return on_device(each); }) ||
         std::ranges::any_of(call.outputs, [](const auto& each) { return on_device(each); });
}

void require_on(const comm::Operation& call, c10::Device device, int rank) {
  const auto require = [&](const at::Tensor& tensor) {
    TORCH_CHECK(tensor.device() == device, comm::name_of(call), ": a tensor of rank ", rank, " lies on ",
                tensor.device(), "; that rank's device is ", device);
  };
  for (const auto& tensor : call.inputs) require(tensor);
  for (const auto& tensor : call.outputs) require(tensor);
}

}  // namespace

NcclFabric::NcclFabric(std::shared_ptr<NcclApi> nccl, comm::Fabric& host, exec::Clock& clock, NcclFabricOptions options)
    : nccl_(nccl), host_(host), options_(std::move(options)), in_flight_(std::move(nccl), clock, options_.init_limit) {}

NcclFabric::~NcclFabric() = default;

std::span<const c10::DeviceType> NcclFabric::device_types() const noexcept {
  static constexpr std::array kTypes{c10::DeviceType::CPU, c10::DeviceType::CUDA};
  return kTypes;
}

void NcclFabric::open(const comm::GroupIdentity& group, const comm::GroupIdentity* parent) {
  host_.open(group, parent);
  std::vector<int> devices;
  for (const int rank : group.ranks) devices.push_back(options_.devices.at(static_cast<std::size_t>(rank)));
  auto* const from = parent != nullptr ? &comms_of(*parent) : nullptr;
  groups_.insert_or_assign(group.id, std::make_unique<GroupComms>(nccl_, group, std::move(devices), from));
}

void NcclFabric::close(const comm::GroupIdentity& group) noexcept {
  groups_.erase(group.id);
  host_.close(group);
}

void NcclFabric::abort(const comm::GroupIdentity& group, int rank) noexcept {
  in_flight_.fail(comms_of(group), std::make_exception_ptr(CommError("the group was aborted", group.name, 0, {})));
  host_.abort(group, rank);
}

c10::Device NcclFabric::device_of(int global_rank) const {
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(options_.devices.at(static_cast<std::size_t>(global_rank)))};
}

c10::Stream NcclFabric::stream_beside(const comm::GroupIdentity& group, int rank, c10::Device device) {
  const auto key = std::make_pair(group.id, rank);
  auto found = streams_.find(key);
  if (found == streams_.end()) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    found = streams_.emplace(key, guard.getStreamFromGlobalPool(device, false)).first;
  }
  return found->second;
}

void NcclFabric::prepare(comm::Operation& call, const comm::GroupIdentity& group, int rank) {
  const bool barrier = call.type == c10d::OpType::BARRIER;
  if (!barrier && !on_device(call)) return host_.prepare(call, group, rank);
  const int global_rank = group.global_rank(rank);
  auto& comms = comms_of(group);
  const auto device = device_of(global_rank);
  if (comms.aborted()) {
    throw CommError(fmt::format("{} on group \"{}\": its communicators were aborted", comm::name_of(call), group.name),
                    group.name, 0, group.ranks);
  }
  require_on(call, device, global_rank);
  require_carried(call);
  const c10::impl::VirtualGuardImpl guard(device.type());
  const auto current = guard.getStream(device);
  const auto runs_on = call.async_op ? stream_beside(group, rank, device) : current;
  call.end = c10::make_intrusive<DeviceCall>(rank, current, runs_on, options_.timed);
}

void NcclFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  if (transfer.calls.front()->end == nullptr) return host_.launch(transfer, done);
  InFlightOperation operation(transfer, done, comms_of(*transfer.group));
  const bool at_once = operation.wanted_at_once();
  in_flight_.add(std::move(operation));
  if (at_once) in_flight_.launch_ready();
}

void NcclFabric::cancel(comm::Completion& done) noexcept {
  in_flight_.cancel(done, options_.end_limit);
  host_.cancel(done);
}

bool NcclFabric::poll() noexcept {
  const bool launched = in_flight_.launch_ready();
  return in_flight_.tell_ended() || launched;
}

}  // namespace rehearse::real
