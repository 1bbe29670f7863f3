// SPDX-License-Identifier: BSD-3-Clause
#include "compile/call_attempt.h"

#include <utility>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "compile/arguments/marks.h"
#include "compile/compile_entry.h"

namespace rehearse::compiler {

Answer CallAttempt::answer() {
  Entry* const hit = find();
  if (hit && call_.options.verify == Verify::Always) return verify_always(*hit);
  return is_served(hit) ? serve(*hit) : miss(hit != nullptr);
}

Entry* CallAttempt::find() {
  EntryCache& entries = call_.cache.entries;
  return now_ ? entries.find_graph(call_.leaves, call_.state, *now_) : entries.find(call_.leaves, call_.state);
}

bool CallAttempt::is_served(const Entry* hit) {
  const bool has_hit = hit != nullptr;
  return std::exchange(was_compared_, true) ? has_hit : call_.cache.agreement.is_served(has_hit);
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
// If no entry has this graph, a new entry gets it. With guard collectives, each rank tells the others whether it needs
// a new entry, as soon as it knows.
Answer CallAttempt::verify_always(Entry& hit) {
  REHEARSE_CHECK(!now_, call_.options.name);
  EntryCache& entries = call_.cache.entries;
  const bool is_refused = entries.is_refused();
  Entry* const known = is_refused ? nullptr : hit.segments ? &hit : entries.find_segmented(call_.leaves, call_.state);
  if ((is_refused || known) && !is_served(&hit)) return miss(true);
  {
    const EntryCache::Lock lock(entries);
    // Another fiber may have refused the function meanwhile.
    if (entries.is_refused()) return call_.eager();
    auto done = verifier_.run(known, with_sizes_of((known ? *known : hit).capture.shape, call_.leaves),
                              [this] { is_served(nullptr); });
    if (auto* const answer = std::get_if<Answer>(&done)) return std::move(*answer);
    now_ = std::move(std::get<Capture>(done));
  }
  Entry* const same = find();
  return is_served(same) ? serve(*same) : miss(same != nullptr);
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
  if (!now_) return call_.eager();
  // The code has run, and must not run again.
  return call_.eager(call_.run(*now_));
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
    agreement.commit(GraphHash{static_cast<std::uint64_t>(graph::structural_hash(*made.entry->capture.module))});
  }
  Entry& entry = cache.entries.add(std::move(*made.entry));
  if (made.served) return std::move(*made.served);
  return ByGraph{&entry};
}

}  // namespace rehearse::compiler
