// SPDX-License-Identifier: BSD-3-Clause
#include "group_world.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::comm {

GroupWorld::GroupWorld(exec::RankExecutor& executor, Fabric& fabric, EventLog& event_log, CheckerSink& sink,
                       const CommunicatorOptions& given)
    : options(given),
      log(event_log),
      mismatches(executor, sink),
      services{executor, executor.clock(), fabric, mismatches, short_messages, habits},
      payloads(static_cast<std::size_t>(executor.options().ranks)),
      groups(*this, static_cast<std::size_t>(executor.options().ranks)),
      works_(static_cast<std::size_t>(executor.options().ranks)),
      known_failures_(static_cast<std::size_t>(executor.options().ranks)) {}

GroupWorld::~GroupWorld() { groups.close(); }

void GroupWorld::release_works() noexcept {
  auto& works = works_[static_cast<std::size_t>(exec::this_rank::rank())];
  while (!works.empty()) {
    RankWork& work = works.front();
    works.pop_front();
    if (!work.asked() && work.record().is_open()) {
      work.mark_asked();
      work.owner()->on_unasked(work);
    }
    // A work with only weak references is in no registry. For any other work, the registry may be the last owner.
    if (c10::raw::intrusive_ptr::use_count(&work) == 0 || c10d::get_work_registry_size() == 0) continue;
    c10d::unregister_work(c10::intrusive_ptr<c10d::Work>::reclaim_copy(&work));
  }
}

void GroupWorld::begin_again(int rank) noexcept {
  works_[static_cast<std::size_t>(rank)].clear();
  payloads.forget_labels(rank);
  groups.begin_again(rank);
}

}  // namespace rehearse::comm
