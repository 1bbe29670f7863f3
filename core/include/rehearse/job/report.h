// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/job/dump_facts.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/job/rank_outcome.h>
#include <rehearse/job/state_finding.h>
#include <rehearse/job/verdict.h>

namespace rehearse {

// How one rank ended.
struct RankLine {
  static constexpr VirtualTime kNotKnown = VirtualTime::min();

  int rank = -1;
  RankOutcome state = RankOutcome::stopped;
  VirtualTime at{};   // when it ended or, if blocked, since when the world stood still; kNotKnown: nobody saw it
  std::string doing;  // the blocked call, or the exception's text
  std::string last;   // the last operation it had completed: "broadcast #6 on group \"world\""; empty: none
  std::string where;  // "train.cpp:41 in step"; empty: unknown
  std::vector<int> waits_for;
};

// Calls that should have been the same.
struct Difference {
  std::string group;
  std::uint64_t sequence = 0;
  struct Side {
    std::vector<int> ranks;  // all that are known to have made this call
    std::string fingerprint;
    std::string where;  // of one of them
  };
  Side first, second;        // where more than half of the ranks agree, first is theirs
  std::vector<Side> others;  // that fit neither
  struct Field {
    std::string name;
    std::string first, second;          // the first side's value, and the next that differs
    std::vector<std::string> others{};  // further values, of others
  };
  std::vector<Field> fields;  // in which they differ: those of first and second, then those of others alone
};

// A collective that ranks called from different places.
struct CallPlaces {
  std::string group;
  std::uint64_t sequence = 0;
  struct Side {
    std::vector<int> ranks;
    std::string where;  // the innermost line in which the ranks' stacks differ
  };
  std::vector<Side> sides;  // most ranks first
};

// A line that calls collectives of a group, and that ranks of the group passed different numbers of times.
struct CallCounts {
  std::string group;
  std::string where;
  struct Side {
    std::uint64_t times = 0;
    std::vector<int> ranks;
  };
  std::vector<Side> sides;  // most ranks first
};

// All that a run has to say, as data; writers make text, JSON and JUnit of it.
struct Report {
  Verdict verdict = Verdict::ok;
  std::string headline;  // the verdict's line without the verdict's name

  std::string program;
  int ranks = 0;
  std::uint64_t seed = 0;
  std::string schedule;
  std::string transport;  // what carried the tensors of a real run: "gloo (tcp on eth0)"; empty: a simulation
  std::string version;
  std::uint64_t identity = 0;  // hash of decisions, events and fired faults: equal for equal runs of one binary
  std::uint64_t decisions = 0;
  std::uint64_t switches = 0;
  std::uint64_t operations = 0;
  VirtualTime end_time{};

  std::vector<RankLine> rank_lines;
  std::vector<Difference> differences;
  // Where calls of a group did not come together: its earlier calls from different places, the first of each kind. That
  // may be meant (a branch for one rank), or be where a rank left a call out.
  std::vector<CallPlaces> call_places;
  std::vector<CallCounts> call_counts;
  std::vector<std::string> wait_cycle;          // one line for each edge
  std::vector<StateFinding> findings;           // of state checkers
  std::vector<FaultLine> faults;                // all that were planned, in that order
  std::vector<std::string> last_events;         // oldest first
  std::vector<std::string> remarks;             // what is worth a word whatever the verdict
  std::map<std::string, std::uint64_t> checks;  // what was checked, and how often it held
  std::string replay;                           // the command that runs this again
  std::vector<std::string> files;               // what was written beside the report
  std::string hint;                             // what would let the report say more; empty: nothing
  std::optional<DumpFacts> dumps;               // of a real job whose dumps were explained; nothing: of a run
};

}  // namespace rehearse
