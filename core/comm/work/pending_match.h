// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::comm {

class RankWork;

// The match to which an incomplete work belongs: its collective, its matched pair, or the queues of sends and receives.
class PendingMatch {
 public:
  virtual ~PendingMatch() = default;
  virtual std::string describe(const RankWork& work) const = 0;
  virtual std::vector<int> waits_for(const RankWork& work) const = 0;  // ranks of the world
  // The work has reached its time limit: fails it, by RankWork::time_out(). A collective also fails the rank's later
  // barriers. A matched pair also fails the peer's call.
  virtual void expire(RankWork& work) = 0;
  // The work leaves the match. Unless all ranks of the collective, or the peer, have arrived, the other ranks will now
  // wait for its rank in vain.
  virtual void withdraw(RankWork& work) = 0;
};

}  // namespace rehearse::comm
