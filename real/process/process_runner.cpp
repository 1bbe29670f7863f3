// SPDX-License-Identifier: BSD-3-Clause
#include "process_runner.h"

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/exec/machine_time.h>
#include <rehearse_internal/exec/process_exit.h>
#include <rehearse_internal/exec/throw_site.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/compile_journal.h>
#include <rehearse_internal/job/early_end.h>
#include <rehearse_internal/job/rank_note.h>
#include <rehearse_internal/job/run_options.h>
#include <rehearse_internal/job/run_record.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "process/backend/gloo_backend.h"
#include "process/backend/nccl_backend.h"
#include "process/process_check_options.h"
#include "process/process_rank_context.h"
#include "process/process_rendezvous.h"
#include "process/run_records.h"

namespace rehearse::real {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr std::chrono::minutes kRendezvous{5};

void check_request(const LaunchedProcess& process, const RunRequest& request) {
  if (request.ranks == process.size) return;
  throw RunnerUnavailable(fmt::format("the run has {} ranks, and {} started {} processes", request.ranks,
                                      process.rank_variable, process.size));
}

// Gives every rank's generators the same seed, like torch.manual_seed() in each process.
void seed_generators(std::uint64_t seed, at::Device device) {
  at::Generator host = at::detail::getDefaultCPUGenerator();  // a handle of the shared generator, not a copy
  host.set_current_seed(seed);
  if (device.is_cpu()) return;
  at::Generator own = at::globalContext().defaultGenerator(device);
  own.set_current_seed(seed);
}

MakeBelow backends_below(const RunRequest& request, const GlooDevices& interfaces, at::Device device) {
  return [timeout = request.timeout, interfaces, device](const StorePtr& group, int rank, int size) -> BackendsBelow {
    auto on_host = make_gloo(group, rank, size, timeout, interfaces);
    if (device.is_cpu()) return {std::move(on_host), nullptr};
    return {std::move(on_host), make_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl", group), rank, size, timeout)};
  };
}

// The text for Report::transport.
std::string transport_of(const GlooDevices& interfaces, at::Device device) {
  const auto gloo = fmt::format("gloo ({})", describe(interfaces));
  return device.is_cpu() ? gloo : fmt::format("{} on GPUs, {} on the host", nccl_below(), gloo);
}

// A rank's handle of the job's store that records in the RankNote which keys the rank waits for. A rank that waits in
// the store is blocked in the kernel, where a report could name nothing but poll(). Blocks and throws as
// c10d::PrefixStore does.
class NotedStore final : public c10d::PrefixStore {
 public:
  using PrefixStore::PrefixStore;

  c10::intrusive_ptr<c10d::Store> clone() override;

  std::vector<std::uint8_t> get(const std::string& key) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  std::vector<std::uint8_t> queuePop(const std::string& key, bool block) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
};

// Uses the words of the simulation's store: `store wait for key "id"`.
std::string text_of(std::string_view what, const std::vector<std::string>& keys) {
  return fmt::format("store {} {} \"{}\"", what, keys.size() == 1 ? "key" : "keys", fmt::join(keys, "\", \""));
}

std::string text_of_wait(const std::vector<std::string>& keys) { return text_of("wait for", keys); }

c10::intrusive_ptr<c10d::Store> NotedStore::clone() {
  return c10::make_intrusive<NotedStore>(prefix_, store_->clone());
}

std::vector<std::uint8_t> NotedStore::get(const std::string& key) {
  const RankNote::Wait noted(text_of_wait({key}));
  return PrefixStore::get(key);
}

std::vector<std::vector<std::uint8_t>> NotedStore::multiGet(const std::vector<std::string>& keys) {
  const RankNote::Wait noted(text_of_wait(keys));
  return PrefixStore::multiGet(keys);
}

std::vector<std::uint8_t> NotedStore::queuePop(const std::string& key, bool block) {
  if (!block) return PrefixStore::queuePop(key, block);
  const RankNote::Wait noted(text_of("queue pop from", {key}));
  return PrefixStore::queuePop(key, block);
}

void NotedStore::wait(const std::vector<std::string>& keys) {
  const RankNote::Wait noted(text_of_wait(keys));
  PrefixStore::wait(keys);
}

void NotedStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  const RankNote::Wait noted(text_of_wait(keys));
  PrefixStore::wait(keys, timeout);
}

// Everything that the rank's back ends use. Must outlive all of these back ends.
struct Job {
  Job(const LaunchedProcess& process, const RunRequest& request, const CheckOptions& checks, const StorePtr& store,
      RunRecord& record, MakeBelow make_below)
      : began(exec::machine_time()),
        session(process.rank, process.size, *store, checks.check_timeout, began),
        journal(process.rank, process.size, record.events, began, request.call_sites),
        services{session,      journal,         std::move(make_below),
                 checks.calls, request.timeout, c10::make_intrusive<NotedStore>("job", store)} {
    rank_note().begin(began);
    if (request.timeout.count() > 0) services.store->setTimeout(request.timeout);
  }

  const VirtualDuration began;
  Session session;
  CallJournal journal;
  RankServices services;
  checks::RankRemarks remarks;
};

// The program ends the process while the rank's body is on some stack. Skip destructors, because threads still run.
void end_here(int rank, Session& session, const std::string& what) {
  session.fail(what);
  end_early({Verdict::rank_failed, fmt::format("rank {}: {}", rank, what), rank, what, RankOutcome::failed, gettid()});
}

// Notes how the rank's body ended, unless the end of the world unwound it: then reports show the rank in the call that
// it was in.
void note_end(const RankEnded& ended) {
  if (ended.end == exec::RankEnd::aborted) return;
  const bool returned = ended.end == exec::RankEnd::returned;
  rank_note().body_ended(returned ? RankOutcome::returned : RankOutcome::failed, ended.what, ended.at);
}

// Returns the exception that left the body, if any.
std::optional<exec::RankFailure> run_body(const LaunchedProcess& process, Job& job, ProcessGroups& groups,
                                          const JobBody& body, const ShowProgress& show, RunRecord& record,
                                          at::Device device, RankEnded& ended) {
  const exec::KeepThrowSites keep_throw_sites;
  const comm::LabelKeeper::Lent labels(job.journal);
  const exec::WorldLocal<compiler::Journal>::Lent compilations(record.journal);
  const exec::WorldLocal<checks::RankRemarks>::Lent remarks(job.remarks);
  const exec::ProcessExitHandler exits([&](const std::string& what) { end_here(process.rank, job.session, what); });
  try {
    ProcessRankContext context(process, groups, job.services, record, show, device);
    body(context);
    ended.at = job.journal.now();
    return std::nullopt;
  } catch (...) {
    exec::RankFailure failure;
    failure.rank = process.rank;
    failure.error = std::current_exception();
    failure.thrown_at = exec::last_throw();
    failure.at = job.journal.now();
    ended = ended_by_exception(job.session.below().has_failed(), failure.at);
    failure.what = ended.what;
    return failure;
  }
}

}  // namespace

std::unique_ptr<RunRecord> ProcessRunner::run(const RunRequest& request, const JobBody& body,
                                              const ShowProgress& show) {
  check_request(process_, request);
  const auto checks = check_options();
  const bool on_gpu = request.transport == Transport::automatic ? has_gpu(process_) : is_on_gpus(request.transport);
  const auto device = on_gpu ? own_gpu(process_) : at::Device(at::kCPU);
  const auto all = join_store(process_, kRendezvous);
  static int runs = 0;  // counts the same in every process of the job
  auto store = c10::make_intrusive<c10d::PrefixStore>(fmt::format("run{}", runs++), all);
  at::set_num_threads(1);
  seed_generators(request.seed, device);

  auto record = std::make_unique<RunRecord>(events_of(request));
  const auto interfaces = gloo_devices(store_address(process_).host);
  record->transport = transport_of(interfaces, device);
  auto job = std::make_unique<Job>(process_, request, checks, std::move(store), *record,
                                   backends_below(request, interfaces, device));
  {
    auto groups = std::make_unique<ProcessGroups>(process_.rank, process_.size, device.type(), job->services);
    RankEnded ended;
    const auto failure = run_body(process_, *job, *groups, body, show, *record, device, ended);
    note_end(ended);
    note_outcome(job->session.end(ended), failure, job->journal.now(), *record);
    record->notes = job->remarks.notes();
    record->check_remarks = job->remarks.lines();
    job->journal.close();
    // If an operation below never ends, its back end must stay, and so must everything to which it would report its
    // end.
    if (job->session.below().any_under_way()) (void)groups.release();
  }
  job->session.close();
  if (job->session.below().any_under_way() || job->session.stands_still()) (void)job.release();
  return record;
}

}  // namespace rehearse::real
