// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/exec/wait_queue.h>

#include "compile/entry.h"

namespace rehearse::compiler {

// The entries that one rank has for one function: which of them serves a call, whether there may be more, and the
// counts of all calls. Used by that rank's fibers only.
class EntryCache {
 public:
  // Keeps a reference to the options.
  explicit EntryCache(const CompileOptions& options) : options_(options) {}

  // Only one fiber of the rank compiles at a time. Blocks while another one has it.
  class Lock {
   public:
    explicit Lock(EntryCache& cache);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    EntryCache& cache_;
  };

  // Each call begins once, and ends in one of note_hit(), note_eager(), add(), add_path() or an exception.
  void begin_call() noexcept;
  void note_hit();
  // No entry serves the call: the code runs as it is, or has done so.
  void note_eager();
  void note_verification() noexcept { ++stats_.verifications; }

  // The first entry, of those used last, whose guards hold. Makes it the one that is looked at first. Null: none.
  Entry* find(const LeafList& leaves, const GlobalState& state);
  // The same for entries with segments alone, and for those whose graph is that of `code`. They change no order.
  Entry* find_segmented(const LeafList& leaves, const GlobalState& state) const;
  Entry* find_graph(const LeafList& leaves, const GlobalState& state, const Capture& code) const;

  // Why no entry serves the call: of each one the first guard that does not hold, latest entry first. Nothing once the
  // limit has been reached. `for_others`: entries that hold are left out; another rank has to compile.
  std::vector<GuardFailure> note_failures(const LeafList& leaves, const GlobalState& state, bool for_others);
  // Neither refused nor full. The first call that finds the cache full warns.
  bool may_grow();
  // The limit counts entries and, in segmented ones, further paths.
  bool is_full() const { return paths() >= options_.recompile_limit; }
  std::size_t size() const noexcept { return entries_.size(); }

  // Under a Lock. The entry's address stays; it gets its number here.
  Entry& add(Entry entry);
  // One more path through the segments of an entry.
  void add_path(Entry& entry, GuardSet guards, std::vector<GraphExplanation> made);

  // The function runs as it is from now on; warns.
  void refuse(const std::string& why);
  bool is_refused() const noexcept { return !refusal_.empty(); }
  // The code keeps tensors beside its results. Whether it did so in the capture before, too.
  bool note_kept() noexcept { return ++captures_that_kept_ >= 2; }

  const CompileStats& stats() const noexcept { return stats_; }
  void explain(Explanation& explanation) const;

 private:
  std::size_t paths() const;
  void note_answer();
  void note_compile(std::size_t graphs);

  const CompileOptions& options_;
  std::deque<Entry> entries_;   // in order of compilation
  std::vector<Entry*> by_use_;  // the one that was used last comes first
  CompileStats stats_;
  std::int64_t answers_ = 0;  // calls that have been answered
  std::vector<Recompile> recompiles_;
  std::string refusal_;
  bool warned_of_limit_ = false;
  int captures_that_kept_ = 0;  // one after the other
  int locks_ = 0;               // more than one outside of fibers, where code may call itself
  exec::WaitQueue waiting_;
};

}  // namespace rehearse::compiler
