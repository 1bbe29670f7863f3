// SPDX-License-Identifier: BSD-3-Clause
#include "one_process_runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>
#include <rehearse/fakes/fake_store.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/fakes/fake_fabric.h>
#include <rehearse_internal/job/fiber_rank_context.h>
#include <rehearse_internal/job/run_options.h>
#include <rehearse_internal/job/run_record.h>
#include <rehearse_internal/job/run_sinks.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "fabric/nccl_fabric.h"
#include "interpose/cuda_calls.h"
#include "interpose/device_waits.h"
#include "nccl/nccl_library.h"
#include "runner/arrival_oracle.h"
#include "runner/device_idle_policy.h"
#include "runner/device_libraries.h"
#include "runner/real_clock.h"

namespace rehearse::real {
namespace {

// While this object lives, backward passes run on the calling thread. Autograd may have no threads for devices: it
// makes them at the process's first backward pass, and only if the process has devices by then.
class WithoutThreads {
 public:
  WithoutThreads() { c10::AutogradState::get_tls_state().set_multithreading_enabled(false); }
  WithoutThreads(const WithoutThreads&) = delete;
  WithoutThreads& operator=(const WithoutThreads&) = delete;
  ~WithoutThreads() { c10::AutogradState::get_tls_state().set_multithreading_enabled(had_); }

 private:
  const bool had_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

// Makes each of the first `devices` GPUs do a little of what ranks will do, including a backward pass, before any rank
// exists. CUDA, cuBLAS and autograd create contexts, handles and threads when a process first needs them. Thus this
// happens here, and not in a rank in the middle of its work. Blocks for about a second for each device.
void warm_up_devices(int devices) {
  const WithoutThreads without_threads;
  for (int device = 0; device < devices; ++device) {
    const at::Device where(at::kCUDA, static_cast<at::DeviceIndex>(device));
    const c10::DeviceGuard guard(where);
    const auto weight = at::ones({2, 2}, at::TensorOptions(where)).set_requires_grad(true);
    at::mm(weight, weight).sum().backward();
    static_cast<void>(weight.grad().cpu());
  }
}

// Opens and tries everything that a run needs, so that the user learns what is missing before any rank begins.
std::shared_ptr<NcclApi> nccl_for(int ranks) {
  require_cuda_calls();
  open_device_libraries();
  const int devices = device_count();
  if (devices < ranks) {
    throw RunnerUnavailable(
        fmt::format("{} ranks need {} GPUs, one each, and this machine has {}; {}--with=gloo runs on the CPU", ranks,
                    ranks, devices, devices > 0 ? fmt::format("--ranks={} fits, ", devices) : ""));
  }
  try {
    std::shared_ptr<NcclApi> nccl = open_nccl();
    warm_up_devices(ranks);
    leave_device_libraries_alone();
    return nccl;
  } catch (const LibraryError& error) {
    throw RunnerUnavailable(error.what());
  }
}

at::Device device_of(int rank) { return {at::kCUDA, static_cast<at::DeviceIndex>(rank)}; }

NcclFabricOptions devices_of(int ranks) {
  NcclFabricOptions options;
  for (int rank = 0; rank < ranks; ++rank) options.devices.push_back(rank);
  return options;
}

torch_state::TorchStateOptions state_of(const RunRequest& request) {
  torch_state::TorchStateOptions state;
  state.seed = request.seed;
  state.single_threaded_autograd = true;
  state.exchange_device = exchange_cuda_device;
  for (int rank = 0; rank < request.ranks; ++rank) state.devices.push_back(device_of(rank));
  return state;
}

exec::ExecutorOptions execution_of(const RunRequest& request) {
  constexpr std::uint32_t kSwitchesBetweenPolls = 16;
  exec::ExecutorOptions execution;
  execution.ranks = request.ranks;
  execution.stack_bytes = request.stack_bytes;
  execution.steps_max = std::numeric_limits<std::uint64_t>::max();
  execution.switches_between_polls = kSwitchesBetweenPolls;
  return execution;
}

}  // namespace

std::unique_ptr<RunRecord> OneProcessRunner::run(const RunRequest& request, const JobBody& body,
                                                 const ShowProgress& show) {
  const auto nccl = nccl_for(request.ranks);
  auto record = std::make_unique<RunRecord>(events_of(request));
  record->transport = fmt::format("{} on GPUs, this process's memory on the host", name_of(*nccl));
  record->decisions.keep_nothing();
  ArrivalOracle oracle;
  Decisions decisions(oracle, record->decisions);
  RealClock clock;
  torch_state::TorchRankState state(state_of(request));
  EndOnFailure failures;
  DeviceIdlePolicy idle({});
  exec::RankExecutor executor(execution_of(request), decisions, clock, state, failures, idle);
  const fakes::ZeroCost costs;
  fakes::FakeFabric host(executor.timers(), clock, costs);
  NcclFabric fabric(nccl, host, clock, devices_of(request.ranks));
  DeviceWaits waits(fabric);
  idle.watch(waits);
  const auto keys = std::make_shared<fakes::StoreState>();
  WorldServices services(executor, fabric, communication_of(request), *record, show);
  const exec::WorldLocal<DeviceWaits>::Lent lent_waits(waits);
  record->outcome = executor.run([&](int rank) {
    auto store = c10::make_intrusive<fakes::FakeStore>(keys);
    store->setTimeout(request.timeout);
    FiberRankContext context(services, rank, request.ranks, std::move(store), state.generator(rank), device_of(rank));
    body(context);
  });
  services.leave();
  return record;
}

}  // namespace rehearse::real
