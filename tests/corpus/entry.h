// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/sim/world.h>

// Programs with the mistakes of published bug reports. They are outside namespace rehearse, because without line
// tables, reports take the functions of that namespace for library code.
namespace corpus {

using rehearse::RankContext;
using rehearse::Verdict;
using rehearse::WorldOptions;

// A published bug report of tests/data/corpus/reports.tsv as a program, and the expected result of its run. In one
// source file of programs/, a line ends with the comment `// <- B010`. Rehearse's report on the run must name this
// line.
struct Entry {
  std::string_view report;  // its id: "B010"
  // Runs the program as reported, or corrected. The two versions differ only in the mistake.
  void (*program)(RankContext& ctx, bool corrected) = nullptr;
  WorldOptions options = {};

  // ok with a headline: the headline is the run's only remark. ok without a headline: the reported program was correct,
  // and the library or simulator that ran it was wrong. In Rehearse, the program must pass.
  Verdict verdict = Verdict::ok;
  std::vector<int> culprits = {};  // ranks; empty: the test does not compare them
  // Names the rank and the operation. "{}" is the place of the mark, such as "train.cpp:31"; "*" fits any text.
  std::string_view headline = {};

  // A further line of Rehearse's report, in the headline's notation: a detail of a finding, a remark or the hint.
  std::string_view evidence = {};

  bool on_every_schedule = true;                       // false: a race, which only some of the first schedules show
  std::optional<WorldOptions> corrected_options = {};  // if the correction needs other options, too

  bool is_wrong() const { return !(verdict == Verdict::ok && headline.empty()); }
};

using Entries = std::vector<Entry>;

// Each file of programs/ has a function that returns its entries.
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

// All entries, by id.
Entries all_entries();

// The file and number of the marked line.
struct Marked {
  std::string file;  // "rank_branches.cpp"
  int line = 0;      // 0: no line, or more than one, has the mark
};
Marked marked_line(std::string_view report);

}  // namespace corpus
