// SPDX-License-Identifier: BSD-3-Clause
#include "compile/call_attempt.h"

#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>

#include "compile/arguments/marks.h"
#include "compile/compared_guards.h"
#include "compile/compile_entry.h"
#include "compile/guards/global_state.h"

namespace rehearse::compiler {

// No guard compares the dispatch keys, so a call whose caller hides autograd neither makes nor uses an entry.
Answer CallAttempt::answer() {
  if (hides_autograd()) return run_uncompiled();
  Entry* const hit = find();
  if (hit && call_.options.verify == Verify::Always) return verify_always(*hit);
  return compare_and_answer(hit);
}

Entry* CallAttempt::find() {
  EntryCache& entries = call_.cache.entries;
  return now_ ? entries.find_graph(call_.leaves, call_.state, *now_) : entries.find(call_.leaves, call_.state);
}

Ability CallAttempt::ability(const Entry* hit) const {
  if (hit != nullptr) return Ability::serve;
  const EntryCache& entries = call_.cache.entries;
  return entries.is_refused() || entries.is_full() ? Ability::run_eagerly : Ability::compile;
}

Ability CallAttempt::compare(Ability own) {
  return std::exchange(was_compared_, true) ? own : call_.cache.agreement.compare(own);
}

Answer CallAttempt::compare_and_answer(Entry* hit) {
  const Ability all = compare(ability(hit));
  if (hit != nullptr && all == Ability::serve) return serve(*hit);
  // If this rank could compile, it runs eagerly for the others.
  const bool could_compile = ability(nullptr) == Ability::compile;
  return all == Ability::run_eagerly && could_compile ? run_eagerly() : miss(hit != nullptr);
}

Answer CallAttempt::serve(Entry& hit) {
  if (now_) return call_.hit(hit);
  if (call_.options.verify == Verify::Always) return verify_always(hit);
  const bool verifies = call_.options.verify == Verify::FirstHit && !hit.verified;
  if (hit.segments) return segments_.serve(hit, verifies);
  if (verifies) verifier_.check(hit);
  return call_.hit(hit);
}

// Runs the code exactly once, as a call without compile() does. Then an entry with the recorded graph serves the call.
// If no entry has this graph, a new entry gets it. With guard collectives, each rank tells the others what it can do,
// as soon as it knows.
Answer CallAttempt::verify_always(Entry& hit) {
  REHEARSE_CHECK(!now_, call_.options.name);
  EntryCache& entries = call_.cache.entries;
  if (entries.is_refused()) return run_uncompiled();
  Entry* const known = hit.segments ? &hit : entries.find_segmented(call_.leaves, call_.state);
  {
    const EntryCache::Lock lock(entries);
    // Another fiber may have refused the function meanwhile.
    if (entries.is_refused()) return run_uncompiled();
    auto done = verifier_.run(known, with_sizes_of((known ? *known : hit).capture.shape, call_.leaves),
                              [this](Ability own) { return compare(own); });
    if (auto* const answer = std::get_if<Answer>(&done)) {
      // The code was refused before its first read, and has not run.
      compare(Ability::run_eagerly);
      return std::move(*answer);
    }
    now_ = std::move(std::get<Capture>(done));
  }
  return compare_and_answer(find());
}

Answer CallAttempt::run_uncompiled() {
  compare(Ability::run_eagerly);
  return call_.eager();
}

// If the code has run, it must not run again.
Answer CallAttempt::run_eagerly() {
  if (!now_) return call_.eager();
  return call_.eager(call_.run(*now_));
}

Answer CallAttempt::miss(bool for_others) {
  EntryCache& entries = call_.cache.entries;
  std::optional<EntryCache::Lock> lock(entries);
  // Another fiber may have compiled an entry meanwhile.
  if (Entry* const made = for_others ? nullptr : find()) {
    lock.reset();
    return serve(*made);
  }
  const std::vector<GuardFailure> failures = entries.note_failures(call_.leaves, call_.state, for_others);
  if (entries.may_grow()) return compile(failures);
  return run_eagerly();
}

// With collectives, the other ranks also learn that a compilation failed.
Answer CallAttempt::compile(const std::vector<GuardFailure>& failures) {
  RankCache& cache = call_.cache;
  Agreement& agreement = cache.agreement;
  agreement.begin_compile(failures, cache.entries.size());
  const CallView view = call_.view();
  agreement.absorb(view.leaves, view.sources, cache.dynamism);
  absorb_marks(view.leaves, view.sources, cache.dynamism);
  SegmentedCompiler::Made made;
  try {
    // If the code has run, it must not run again. What the ranks have just exchanged takes effect from the next call
    // on.
    if (now_) {
      made.entry = compile_entry(call_, *std::exchange(now_, std::nullopt));
    } else {
      made = segments_.compile();
    }
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    agreement.fail(error.what());
    throw;
  }
  if (!made.entry) return call_.eager(std::move(made.served));
  // Segments have committed their own compilations.
  if (agreement.is_open()) {
    const Capture& capture = made.entry->capture;
    const bool is_kept = agreement.commit(*capture.module);
    segments_.heed_refusal();
    if (!is_kept) return call_.eager(call_.run(capture));
  }
  agreement.compare_under(compared_guards(view, made.entry->capture, call_.options));
  Entry& entry = cache.entries.add(std::move(*made.entry));
  if (made.served) return std::move(*made.served);
  return ByGraph{&entry};
}

}  // namespace rehearse::compiler
