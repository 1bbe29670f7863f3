// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/sim/world.h>

// Programs with the mistakes of published bug reports. Outside of rehearse, whose frames are no user's.
namespace corpus {

using rehearse::RankContext;
using rehearse::Verdict;
using rehearse::WorldOptions;

// A report of tests/data/corpus/reports.tsv as a program, and what a run of it must say. The line that the report of
// the run has to lead to ends with the comment `// <- B010`, in the one source file of programs/ that has it.
struct Entry {
  std::string_view report;  // its id: "B010"
  // As it was reported, and as it is right: the mistake is what differs.
  void (*program)(RankContext& ctx, bool corrected) = nullptr;
  WorldOptions options = {};

  // ok with a headline: it is the run's only remark. ok without one: nothing was wrong in the reported program, and
  // what had simulated it was; it must pass here.
  Verdict verdict = Verdict::ok;
  std::vector<int> culprits = {};  // ranks; empty: nobody, or whoever comes first
  // Names the rank and the operation. "{}" stands for the place of the marked line, "train.cpp:31"; "*" for anything.
  std::string_view headline = {};

  // A further line of the report, as the headline: of what was found, of remarks, of what it hints at.
  std::string_view evidence = {};

  bool on_every_schedule = true;  // false: a race, found by some of the first schedules and told by all that fail
  std::optional<WorldOptions> corrected_options = {};  // where what is right is not in the program alone

  bool is_wrong() const { return !(verdict == Verdict::ok && headline.empty()); }
};

using Entries = std::vector<Entry>;

// One function for each file of programs/.
Entries averages();
Entries buffers();
Entries caches();
Entries checkpoints();
Entries collective_order();
Entries compiled();
Entries crashes();
Entries data_parallel();
Entries drift();
Entries fully_sharded();
Entries groups();
Entries many_groups();
Entries messages();
Entries networks();
Entries object_collectives();
Entries rank_branches();
Entries replicas();
Entries shapes();
Entries split_graphs();
Entries stores();
Entries timeouts();
Entries uneven_inputs();

// All of them, by id.
Entries all_entries();

// The marked line.
struct Marked {
  std::string file;  // "rank_branches.cpp"
  int line = 0;      // 0: no file, or more than one, has the mark
};
Marked marked_line(std::string_view report);

}  // namespace corpus
