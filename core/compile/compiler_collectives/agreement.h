// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/compile/leaf.h>
#include <rehearse_internal/job/compile_journal.h>

#include "compile/arguments/dynamism.h"
#include "compile/compiler_collectives/compiler_collectives.h"

namespace rehearse::compiler {

// Source of a GuardFailure where all guards hold and the code gives another graph (Verify::Always).
inline constexpr const char* kFunctionItself = "the function";

// One rank's calls of one function as other ranks and reports see them: what it agrees on with the ranks of
// CompileOptions::group, and its record in the world's journal.
class Agreement {
 public:
  // Throws CompileError where ranks are to compare guards and there is no group.
  explicit Agreement(const CompileOptions& options);

  void begin_call() noexcept { record_->called(); }

  // In each call: does the cache serve it? With guard collectives only where it serves all ranks. Blocks then.
  bool is_served(bool hit);

  // Behind a read or a region: does some rank lack what follows, so that all compile it? Only with guard collectives;
  // blocks then.
  bool all_compile_next(bool has_next);

  void note_hit(std::size_t entry) noexcept { record_->hit(entry); }

  // The call compiles. `failures`: the guards that did not hold, latest entry first, of `entries` of them; where it is
  // fewer the call compiles for other ranks.
  void begin_compile(const std::vector<GuardFailure>& failures, std::size_t entries);

  // Lets `dynamism` see the call's arguments, and with compiler collectives those of all ranks. Blocks then.
  void absorb(const LeafList& leaves, const std::vector<std::string>& sources, Dynamism& dynamism);

  // The call compiles one more segment, before its code runs; with compiler collectives the ranks meet, and block. It
  // is a compilation like any other: it may meet the first one of another rank's call. `why`: what it follows.
  void begin_segment(const std::string& why, exec::CallSite where);

  // What the open compilation made has collectives, or may have.
  void note_communication() noexcept { record_->communicates(); }

  // Has a compilation begun whose end is not yet told?
  bool is_open() const noexcept { return is_open_; }

  // Tells the others how it went, and learns from them; blocks where ranks meet. Throws CompileError that names the
  // lowest rank that could not compile, unless that is all of them: false then, each has an error of its own.
  bool commit(const CompileOutcome& outcome);
  // Does that with an error, if a compilation is open.
  void fail(const std::string& error);

 private:
  CollectiveLabel label() const;
  // Ends the open compilation if it fails.
  std::vector<InputFacts> exchange(const InputFacts& own);

  const bool compiler_collectives_, guard_collectives_;
  std::optional<CompilerCollectives> collectives_;
  const std::shared_ptr<FunctionRecord> record_;
  bool is_open_ = false;
};

// What a rank takes of all ranks' facts (in order of rank), in this order: those that look like its own (of the same
// kind, dtype and number of dimensions), and those of which it has none itself.
InputFacts facts_to_absorb(const std::vector<InputFacts>& all, const InputFacts& own);

}  // namespace rehearse::compiler
