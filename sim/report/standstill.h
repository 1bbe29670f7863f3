// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <rehearse/comm/wait_for_graph.h>
#include <rehearse/exec/executor.h>
#include <rehearse/job/report.h>

namespace rehearse::sim {

// Ranks that did not go on, and whose fault that is: those that have ended, then a cycle, then ranks that stand in
// something of their own. Add what each rank was in; ranks of which nothing is added have ended.
class Standstill {
 public:
  explicit Standstill(int ranks);

  void add(const exec::BlockedFiber& fiber);
  void add(comm::BlockedCall call);

  struct Story {
    std::string headline;                 // the culprits, where they are, and who waits for them; empty: nobody is blocked
    std::vector<std::string> wait_cycle;  // one line for each edge
    bool polled = false;                  // the culprit looks again and again at something
  };

  // `lines`: for where each rank stands. `until`: when a timeout ended the wait for ranks that were merely late; empty:
  // nobody could go on any more.
  Story tell(const std::vector<RankLine>& lines, std::optional<VirtualTime> until = {}) const;

 private:
  std::vector<comm::BlockedCall> calls_;  // an empty call: the rank could have gone on
  std::set<int> polling_;
  std::set<int> ended_;
};

}  // namespace rehearse::sim
