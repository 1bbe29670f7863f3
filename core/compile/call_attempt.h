// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "compile/call.h"
#include "compile/segmented_compiler.h"
#include "compile/verifier.h"

namespace rehearse::compiler {

// One call from its leaves to its answer: looks for an entry, has it verified, or has a new one compiled.
class CallAttempt {
 public:
  explicit CallAttempt(Call& call) : call_(call), segments_(call), verifier_(call, segments_) {}
  CallAttempt(const CallAttempt&) = delete;
  CallAttempt& operator=(const CallAttempt&) = delete;

  // Once.
  Answer answer();

 private:
  // The entry that serves the call: where the code has run, one with the graph that it gave.
  Entry* find();
  // Ranks compare, once a call, whether the cache serves it.
  bool is_served(const Entry* hit);
  Answer serve(Entry& hit);
  Answer verify_always(Entry& hit);
  // `for_others`: another rank has to compile, and so all do.
  Answer miss(bool for_others);
  Answer compile(const std::vector<GuardFailure>& failures);

  Call& call_;
  SegmentedCompiler segments_;
  Verifier verifier_;
  std::optional<Capture> now_;  // what the code gives, where it has run in this call (Verify::Always)
  bool was_compared_ = false;
};

}  // namespace rehearse::compiler
