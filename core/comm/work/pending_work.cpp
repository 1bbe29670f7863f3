// SPDX-License-Identifier: BSD-3-Clause
#include "pending_work.h"

namespace rehearse::comm {

PendingOperation pending_of(const RankWork& work, const PendingMatch& match) {
  PendingOperation pending;
  pending.rank = work.global_rank();
  pending.group = work.group().name;
  pending.sequence = work.getSequencenumber();
  pending.call = title_of(work);
  pending.description = match.describe(work);
  pending.waits_for = match.waits_for(work);
  pending.timed_out = work.timed_out();
  pending.gave_up = work.gave_up();
  pending.left_behind = work.owner()->is_left_behind(work, pending.waits_for);
  pending.record_id = work.record().id();
  return pending;
}

}  // namespace rehearse::comm
