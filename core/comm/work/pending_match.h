// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::comm {

class RankWork;

// What an incomplete work is part of: its collective, or the queues of sends and receives.
class PendingMatch {
 public:
  virtual ~PendingMatch() = default;
  virtual std::string describe(const RankWork& work) const = 0;
  virtual std::vector<int> waits_for(const RankWork& work) const = 0;  // ranks of the world
  // The work's time is over: fails it, by RankWork::time_out(), and with it whatever cannot go on without it.
  virtual void expire(RankWork& work) = 0;
  // The work is no longer part of it: unless its data is on its way, the others wait for its rank in vain.
  virtual void withdraw(RankWork& work) = 0;
};

}  // namespace rehearse::comm
