// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "compile/call.h"
#include "compile/segmented_compiler.h"
#include "compile/verifier.h"

namespace rehearse::compiler {

// Answers one call: finds an entry, has it verified if the options say so, or has a new one compiled.
class CallAttempt {
 public:
  explicit CallAttempt(Call& call) : call_(call), segments_(call), verifier_(call, segments_) {}
  CallAttempt(const CallAttempt&) = delete;
  CallAttempt& operator=(const CallAttempt&) = delete;

  // Call it once.
  Answer answer();

 private:
  // The entry that serves the call. If the code has run, the entry with the graph that the code gave.
  Entry* find();
  // What this rank can do if `hit` is the entry that serves the call; null: none.
  Ability ability(const Entry* hit) const;
  // Compares the abilities of all ranks, at most once in a call. Returns `own` if it has done so before.
  Ability compare(Ability own);
  // Compares, and does what all ranks do.
  Answer compare_and_answer(Entry* hit);
  Answer serve(Entry& hit);
  Answer verify_always(Entry& hit);
  // `for_others`: this rank has an entry, but another rank must compile, and therefore all ranks compile.
  Answer miss(bool for_others);
  Answer compile(const std::vector<GuardFailure>& failures);
  Answer run_eagerly();
  // Answers a call whose code has not run and that no entry may serve, and says so to the other ranks.
  Answer run_uncompiled();

  Call& call_;
  SegmentedCompiler segments_;
  Verifier verifier_;
  std::optional<Capture> now_;  // the capture of this call, if the code has run in it (Verify::Always)
  bool was_compared_ = false;
};

}  // namespace rehearse::compiler
