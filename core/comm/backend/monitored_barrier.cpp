// SPDX-License-Identifier: BSD-3-Clause
// c10d's monitored barrier for fibers, with Gloo's behaviour.
#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/rank_backend.h>
#include <rehearse_internal/exec/this_rank.h>

#include "comm/agree/wording.h"
#include "comm/group/group_state.h"
#include "comm/work/work_observer.h"

namespace rehearse::comm {
namespace {

// Fails rank 0's call at once (see DescribedBackend::is_barrier_without_time()). The barrier then fails for all other
// ranks, too.
void fail_at_once(GroupState& group, const c10::intrusive_ptr<RankWork>& barrier) {
  group.check(*barrier);
  group.collectives().fail_monitored_barrier_of(barrier->rank());
  group.submit(barrier);
  barrier->mark_asked();                       // the error below tells the rank how its barrier has ended
  if (barrier->incomplete()) barrier->wait();  // throws, because the world ends
  exec::this_rank::note_given_up(WorkObserver(*barrier));
  group.member(barrier->rank()).note(c10d::ErrorType::TIMEOUT);
  throw TimeoutError(barrier_without_time(), group.identity().name, barrier->getSequencenumber(), {});
}

}  // namespace

void RankBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  auto work = make(monitored_barrier(options));
  work->operation.tag = Operation::kMonitoredBarrier;
  if (is_barrier_without_time(options, wait_all_ranks)) return fail_at_once(*group_, work);
  submit_to_group(work);
  if (rank_ != 0) {
    work->wait();
    return;
  }
  try {
    work->wait();
  } catch (const TimeoutError& error) {
    group_->collectives().give_up_monitored_barrier(*work, error, wait_all_ranks);
  }
}

}  // namespace rehearse::comm
