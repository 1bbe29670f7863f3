// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/compile/journal.h>
#include <rehearse/compile/leaf.h>

#include "compile/dynamism.h"
#include "compile/meeting/compile_meeting.h"

namespace rehearse::compiler {

// One rank's calls of one function as other ranks and reports see them: what it agrees on with the ranks of
// CompileOptions::group, and its record in the world's journal.
class Agreement {
 public:
  // Throws CompileError where ranks are to compare guards and there is no group.
  explicit Agreement(const CompileOptions& options);

  // In each call: does the cache serve it? With guard collectives only where it serves all ranks. Blocks then.
  bool is_served(bool hit);

  void note_hit(std::size_t entry) noexcept { record_->hit(entry); }

  // The call compiles. `failures`: the guards that did not hold, latest entry first, of `entries` of them.
  void begin_compile(const std::vector<GuardFailure>& failures, std::size_t entries);

  // Lets `dynamism` see the call's arguments, and with compiler collectives those of all ranks. Blocks then.
  void absorb(const LeafList& leaves, const std::vector<std::string>& sources, Dynamism& dynamism);

  // Tells the others how it went, and learns from them; blocks where ranks meet. Throws CompileError that names the
  // lowest rank that could not compile, unless that is all of them: false then, each has an error of its own.
  bool commit(const CompileOutcome& outcome);

 private:
  MeetingLabel label() const;

  const bool compiler_collectives_, guard_collectives_;
  std::optional<CompileMeeting> meeting_;
  const std::shared_ptr<FunctionRecord> record_;
};

// What a rank takes of all ranks' facts (in order of rank), in this order: those that look like its own (of the same
// kind, dtype and number of dimensions), and those of which it has none itself.
InputFacts facts_to_absorb(const std::vector<InputFacts>& all, const InputFacts& own);

}  // namespace rehearse::compiler
