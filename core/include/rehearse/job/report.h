// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/place.h>
#include <rehearse/exec/time.h>
#include <rehearse/job/cause.h>
#include <rehearse/job/dump_facts.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/job/rank_outcome.h>
#include <rehearse/job/state_finding.h>
#include <rehearse/job/verdict.h>

namespace rehearse {

// The end of one rank.
struct RankLine {
  static constexpr VirtualTime kNotKnown = VirtualTime::min();

  int rank = -1;
  RankOutcome state = RankOutcome::stopped;
  VirtualTime at{};   // when it ended or, if blocked, when the world came to a standstill; kNotKnown: unknown
  std::string doing;  // the blocked call, or the exception's text
  // The last operation that it completed: "broadcast #6 on group \"world\"". Empty: none known, or the verdict is OK.
  std::string last;
  Place where;
  std::vector<int> waits_for;
  Place last_where{};             // where it called `last`; set only if `where` is unknown, as for ranks that returned
  std::vector<int> gave_up_on{};  // if its call timed out: the ranks for which the call waited
  std::vector<int> lost{};        // if its call failed because ranks closed their connections: these ranks
};

// Calls that should have been equal. Or a call that some ranks left out: `first` is that call, the other sides are the
// ranks without it, and their `fingerprint` says what they called last.
struct Difference {
  std::string group;
  std::uint64_t sequence = 0;
  struct Side {
    std::vector<int> ranks;  // all ranks known to have made this call
    std::string fingerprint;
    Place where;  // where one of them made the call
  };
  Side first, second;        // if more than half of the ranks agree, `first` is their call
  std::vector<Side> others;  // calls that equal neither `first` nor `second`
  struct Field {
    std::string name;
    std::string first, second;          // the value on the first side, and the first value that differs from it
    std::vector<std::string> others{};  // further values, from the sides in `others`
  };
  // The fields that differ: first the fields in which `first` and `second` differ, then those of `others` only.
  std::vector<Field> fields;
};

// A collective that ranks called from different places.
struct CallPlaces {
  std::string group;
  std::uint64_t sequence = 0;
  struct Side {
    std::vector<int> ranks;
    Place
        where;  // the innermost line; if all ranks share it, its text also names the first line at which stacks differ
  };
  std::vector<Side> sides;  // most ranks first
};

// A source line that calls collectives of a group, and that some ranks of the group executed more often than others.
struct CallCounts {
  std::string group;
  Place where;
  struct Side {
    std::uint64_t times = 0;
    std::vector<int> ranks;
  };
  std::vector<Side> sides;  // most ranks first
};

// Where the stacks of ranks at fault and of other ranks part: the outermost lines that differ.
struct Parting {
  struct Side {
    std::vector<int> ranks;
    Place where;
    // The branch around this line that is not around the other line, if an interpreter tells: "if loss > 2.0". Empty:
    // none, or nobody knows.
    std::string branch;
    int branch_line = 0;
  };
  Side culprits, others;
};

// The lines through which an exception left a rank's code, as an interpreter shows them.
struct Traceback {
  struct Line {
    Place where;
    std::string source;
  };
  std::vector<int> ranks;
  std::vector<Line> lines;  // outermost first
};

// Everything that a run reports, as data.
struct Report {
  Verdict verdict = Verdict::ok;
  std::string headline;  // the verdict's line without the verdict's name

  std::string program;
  int ranks = 0;
  std::uint64_t seed = 0;
  std::string schedule;
  std::string transport;  // what carried the tensors of a real run: "gloo (tcp on eth0)"; empty: a simulation
  std::string version;
  // Hash of decisions, events and fired faults: equal for equal runs of one binary. 0 for a real run.
  std::uint64_t identity = 0;
  std::uint64_t decisions = 0;
  std::uint64_t switches = 0;
  std::uint64_t operations = 0;
  VirtualTime end_time{};
  // Set if timeouts ended a deadlock or livelock: from this time on, no rank could go on. Calls that a timeout ended
  // later never complete, in every view of the run.
  std::optional<VirtualTime> stuck_since;

  std::vector<Cause> causes;  // how the trouble began, in the order of the headline; empty: not known
  std::vector<RankLine> rank_lines;
  std::vector<Difference> differences;
  // If calls of a group were not matched: earlier calls of the group that ranks made from different places: at most
  // three, the first of each kind. They may be intended (a branch for one rank), or show where a rank left out a call.
  std::vector<CallPlaces> call_places;
  std::vector<CallCounts> call_counts;
  std::optional<Parting> parting;
  std::vector<Traceback> tracebacks;
  std::vector<std::string> wait_cycle;          // one line per edge
  std::vector<StateFinding> findings;           // from state checkers
  std::vector<FaultLine> faults;                // all planned faults, in the order of the plan
  std::vector<std::string> last_events;         // oldest first
  std::vector<std::string> remarks;             // what is worth knowing, whatever the verdict
  std::vector<Place> places;                    // those of which texts of this report speak, in order of their texts
  std::map<std::string, std::uint64_t> checks;  // how often each check held
  std::string replay;                           // the command that repeats this run
  std::vector<std::string> files;               // the files that the run wrote
  std::string hint;                             // how to get a more detailed report; empty: nothing
  // Set if the report explains dumps of a real job instead of a run.
  std::optional<DumpFacts> dumps;
};

}  // namespace rehearse
