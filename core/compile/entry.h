// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/exec/wait_queue.h>

#include "compile/arguments/input_binding.h"
#include "compile/captures/capture.h"

namespace rehearse::compiler {

struct SegmentTree;

// One compilation of a function, with its guards.
struct Entry {
  // Like GuardSet::holds(), for the guards of all paths through the segments.
  bool holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure = nullptr) const;
  std::size_t paths() const;
  // Runs the graph of an entry without segments on a call for which it holds.
  std::vector<c10::IValue> run(const LeafList& leaves);
  // Leaves in `values` the inputs that the run did not consume.
  std::vector<c10::IValue> run_graph(std::vector<c10::IValue>& values) const { return graph.run(std::move(values)); }

  Capture capture;
  CompiledGraph graph;
  InputBuffer inputs = {};
  std::shared_ptr<SegmentTree> segments = {};  // replaces `graph` if the function reads data or has eager regions
  EntryExplanation explanation;
  bool verified = false;
  std::size_t number = 0;  // in order of compilation
};

// The entries of one rank for one function. Decides which of them serves a call and whether more may be added, and
// counts all calls. Only that rank's fibers may use it, and outside of fibers only one thread at a time.
class EntryCache {
 public:
  // Keeps a reference to the options.
  explicit EntryCache(const CompileOptions& options) : options_(options) {}

  // Lets only one fiber of the rank compile at a time. Blocks while another fiber holds the lock.
  class Lock {
   public:
    explicit Lock(EntryCache& cache);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    EntryCache& cache_;
  };

  // Each call begins once, and ends with one of note_hit(), note_eager(), add(), add_path(), or with an exception.
  void begin_call() noexcept;
  void note_hit();
  // No entry serves the call: the code runs eagerly, or has done so.
  void note_eager();
  void note_verification() noexcept { ++stats_.verifications; }

  // The first entry whose guards hold, beginning with the most recently used one. Makes it the most recently used. Null
  // if none holds.
  Entry* find(const LeafList& leaves, const GlobalState& state);
  // Like find(), but find_segmented() considers only entries with segments, and find_graph() only entries without
  // segments that have the graph of `code`. Neither changes which entry counts as most recently used.
  Entry* find_segmented(const LeafList& leaves, const GlobalState& state) const;
  Entry* find_graph(const LeafList& leaves, const GlobalState& state, const Capture& code) const;

  // Records and returns why no entry serves the call: for each entry the first guard that does not hold, or
  // kFunctionItself if all hold, latest entry first. Empty without entries, and once may_grow() has warned of the
  // limit. `for_others`: another rank must compile; leaves out entries that hold.
  std::vector<GuardFailure> note_failures(const LeafList& leaves, const GlobalState& state, bool for_others);
  // True unless the cache is full or the function is refused. The first call that finds the cache full warns.
  bool may_grow();
  // The limit counts entries and, in segmented ones, further paths.
  bool is_full() const { return paths() >= options_.recompile_limit; }
  std::size_t size() const noexcept { return entries_.size(); }

  // Call add() and add_path() under a Lock. add() gives the entry its number. The entry's address does not change
  // later.
  Entry& add(Entry entry);
  void add_path(Entry& entry, GuardSet guards, std::vector<GraphExplanation> made);

  // From now on, calls that no entry serves run eagerly. Warns.
  void refuse(const std::string& why);
  bool is_refused() const noexcept { return !refusal_.empty(); }
  // Call this if the code keeps tensors (Capture::keeps_tensors). Returns whether the code also kept tensors in an
  // earlier capture since the last entry was added.
  bool note_kept() noexcept { return ++captures_that_kept_ >= 2; }
  // Whether note_kept() would return true.
  bool has_kept() const noexcept { return captures_that_kept_ >= 1; }

  const CompileStats& stats() const noexcept { return stats_; }
  void explain(Explanation& explanation) const;

 private:
  std::size_t paths() const;
  void note_answer();
  void note_compile(std::size_t graphs);

  const CompileOptions& options_;
  std::deque<Entry> entries_;   // in order of compilation
  std::vector<Entry*> by_use_;  // the most recently used first
  CompileStats stats_;
  std::int64_t answers_ = 0;  // calls that were answered
  std::vector<Recompile> recompiles_;
  std::string refusal_;
  bool warned_of_limit_ = false;
  int captures_that_kept_ = 0;  // since the last entry was added
  int locks_ = 0;               // may exceed one outside of fibers, if code calls itself
  exec::WaitQueue waiting_;
};

}  // namespace rehearse::compiler
