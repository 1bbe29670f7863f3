// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/fiber_rank_context.h>

#include <utility>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {

WorldServices::WorldServices(exec::RankExecutor& executor, comm::Fabric& fabric,
                             const comm::CommunicatorOptions& options, RunRecord& of_run, const ShowProgress& progress,
                             ScratchFolders* folders)
    : record(of_run),
      show(progress),
      scratch(folders),
      communicators(executor, fabric, record.events, mismatches, options) {}

void WorldServices::leave() const {
  record.pending = communicators.pending();
  record.pending_groups = communicators.pending_groups();
  record.unwaited = communicators.unwaited_calls();
  record.short_messages = communicators.short_messages();
  record.raced_groups = communicators.raced_groups();
  const auto add = [](const auto& texts, auto& to) {
    for (const auto& [text, ranks] : texts) to[text].insert(ranks.begin(), ranks.end());
  };
  add(communicators.remarks(), record.habits);
  add(communicators.notes(), record.notes);
  add(remarks.notes(), record.notes);
  for (auto& line : remarks.lines()) record.check_remarks.push_back(std::move(line));
}

FiberRankContext::FiberRankContext(WorldServices& services, int rank, int size, c10::intrusive_ptr<c10d::Store> store,
                                   at::Generator generator, at::Device device, int incarnation)
    : RankContextBase(services.record, services.show, std::move(generator), device),
      services_(services),
      rank_(rank),
      size_(size),
      incarnation_(incarnation),
      store_(std::move(store)),
      group_(services_.communicators.new_world_group(store_)) {
  comm::record_spans_in(services_.record.events);
}

Group FiberRankContext::new_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(services_.communicators.new_group(ranks, name, store_));
}

Group FiberRankContext::new_local_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(services_.communicators.new_local_group(ranks, name, store_));
}

void FiberRankContext::spend(VirtualDuration duration) { exec::this_rank::sleep_for(duration, "a computation"); }

}  // namespace rehearse
