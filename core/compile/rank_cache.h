// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/exec/wait_queue.h>

#include "compile/agreement.h"
#include "compile/arguments/dynamism.h"
#include "compile/entry.h"

namespace rehearse::compiler {

// What one rank has compiled of one function. Used by that rank's fibers only.
struct RankCache {
  explicit RankCache(const CompileOptions& options)
      : dynamism(options.dynamic), backend(options.backend.get()), agreement(options) {}

  // The first entry, of those used last, whose guards hold. Makes it the one that is looked at first.
  Entry* find(const LeafList& leaves, const GlobalState& state);
  // What counts for the limit of recompilations: entries, and further branches of theirs.
  std::size_t paths() const;

  Dynamism dynamism;
  std::shared_ptr<Backend> backend;
  Agreement agreement;
  std::deque<Entry> entries;   // in order of compilation; addresses stay
  std::vector<Entry*> by_use;  // the one that was used last comes first
  CompileStats stats;
  std::vector<Recompile> recompiles;
  std::string refusal;  // why the function runs as it is
  bool warned_of_limit = false;
  int calls_that_kept = 0;  // tensors beside their results, one after the other

  // Only one fiber of the rank compiles at a time.
  class Lock {
   public:
    explicit Lock(RankCache& cache);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    RankCache& cache_;
  };

 private:
  bool busy_ = false;
  exec::WaitQueue waiting_;
};

}  // namespace rehearse::compiler
