// SPDX-License-Identifier: BSD-3-Clause
#include "process_runner.h"

#include <chrono>
#include <exception>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <rehearse/exec/machine_time.h>
#include <rehearse/exec/throw_site.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "process/gloo_backend.h"
#include "process/process_rank_context.h"
#include "process/rendezvous.h"

namespace rehearse::real {
namespace {

constexpr std::chrono::minutes kRendezvous{5};

void check_request(const LaunchedProcess& process, const RunRequest& request) {
  if (request.ranks == process.size) return;
  throw RunnerUnavailable(fmt::format("the run has {} ranks, and {} started {} processes", request.ranks,
                                      process.rank_variable, process.size));
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception without a text";
  }
}

// In a catch block.
exec::RankFailure failure_of(int rank, VirtualTime at) {
  exec::RankFailure failure;
  failure.rank = rank;
  failure.error = std::current_exception();
  failure.what = text_of(failure.error);
  failure.thrown_at = exec::last_throw();
  failure.at = at;
  return failure;
}

}  // namespace

std::unique_ptr<RunRecord> ProcessRunner::run(const RunRequest& request, const JobBody& body,
                                              const ShowProgress& show) {
  check_request(process_, request);
  const auto all = meet(process_, kRendezvous);
  static int runs = 0;  // every process of the job counts alike
  const auto store = c10::make_intrusive<c10d::PrefixStore>(fmt::format("run{}", runs++), all);
  if (request.timeout.count() > 0) store->setTimeout(request.timeout);
  at::set_num_threads(1);
  at::Generator generator = at::detail::getDefaultCPUGenerator();  // shared, not a copy
  generator.set_current_seed(request.seed);

  comm::EventLogOptions events;
  events.ranks = process_.size;
  events.keep_all = request.keep_all_events || request.call_sites;
  auto record = std::make_unique<RunRecord>(events);
  auto& outcome = record->outcome;
  outcome.ranks.assign(static_cast<std::size_t>(process_.size), exec::RankEnd::returned);
  outcome.ended_at.resize(outcome.ranks.size());

  const auto place = meeting_place(process_);
  const auto began = exec::machine_time();
  const auto now = [began] { return VirtualTime{exec::machine_time() - began}; };
  ProcessGroups groups(process_.rank, process_.size, c10::kCPU, [&](const auto& group_store, int rank, int size) {
    return make_gloo(group_store, rank, size, request.timeout, place.host);
  });
  const exec::KeepThrowSites keep_throw_sites;
  try {
    ProcessRankContext context(process_, groups, store, *record, show, began, at::kCPU);
    body(context);
    context.group().barrier()->wait();  // nobody closes its connections while another still uses them
  } catch (...) {
    outcome.ending = exec::Ending::rank_failed;
    outcome.failures.push_back(failure_of(process_.rank, now()));
    outcome.ranks[static_cast<std::size_t>(process_.rank)] = exec::RankEnd::failed;
  }
  outcome.end_time = now();
  outcome.ended_at.assign(outcome.ranks.size(), outcome.end_time);
  return record;
}

}  // namespace rehearse::real
