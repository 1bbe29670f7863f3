// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "compile/call.h"
#include "compile/segmented_compiler.h"

namespace rehearse::compiler {

// Runs the code of one call under the tracer although an entry would serve the call, because the code may depend on
// state that no guard checks.
class Verifier {
 public:
  Verifier(Call& call, SegmentedCompiler& segments) : call_(call), segments_(segments) {}

  // For Verify::FirstHit and an entry without segments. Throws StaleCapture if the code gives another graph.
  void check(Entry& hit);

  // For Verify::Always: runs the code exactly once, as a call without compile() does. `known`: the entry with segments
  // whose guards hold; null: none. `shape`: the shapes to capture with. The capture calls `compare`
  // (SegmentOwner::compare_call). Returns a Capture if the code has no read or eager region; then its graph
  // has not run yet.
  std::variant<Answer, Capture> run(Entry* known, const std::vector<LeafShape>& shape,
                                    const std::function<Ability(Ability)>& compare);

 private:
  Capture capture_beside(const Entry& hit);
  std::variant<Answer, Capture> note(Entry* known, Capture captured, Segmented& segmented);

  Call& call_;
  SegmentedCompiler& segments_;
};

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
