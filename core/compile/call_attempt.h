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
  // With guard collectives, asks the other ranks, at most once in a call, whether the caches of all ranks serve the
  // call.
  bool is_served(const Entry* hit);
  Answer serve(Entry& hit);
  Answer verify_always(Entry& hit);
  // `for_others`: this rank has an entry, but another rank must compile, and therefore all ranks compile.
  Answer miss(bool for_others);
  Answer compile(const std::vector<GuardFailure>& failures);

  Call& call_;
  SegmentedCompiler segments_;
  Verifier verifier_;
  std::optional<Capture> now_;  // the capture of this call, if the code has run in it (Verify::Always)
  bool was_compared_ = false;
};

}  // namespace rehearse::compiler
