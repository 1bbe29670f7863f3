// SPDX-License-Identifier: BSD-3-Clause
// Calls of functions that read data.
#include <algorithm>
#include <utility>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/left_fakes.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/shapes/errors.h>

#include "compile/callable_impl.h"
#include "compile/parts/eager_backend.h"
#include "compile/segments/segmented.h"

namespace rehearse::compiler {

bool Entry::holds(const LeafList& leaves, const GlobalState& state, GuardFailure* failure) const {
  if (!capture.guards.holds(leaves, state, failure)) return false;
  return !segments || std::all_of(segments->guards.begin(), segments->guards.end(),
                                  [&](const GuardSet& guards) { return guards.holds(leaves, state, failure); });
}

std::size_t Entry::paths() const { return 1 + (segments ? segments->guards.size() : 0); }

// None: the code has run eagerly from where the capture failed, or nothing of it has run.
std::optional<Capture> Callable::Impl::try_segments(Call& call, const std::vector<LeafShape>& shape,
                                                    Segmented& segmented) {
  Agreement& agreement = call.cache.agreement;
  const auto give_up = [&](const std::exception& error) {
    agreement.fail(error.what());  // before the rest runs, in which ranks may meet
    if (options_.fullgraph || segmented.capture.is_broken()) throw;
    refuse(call, error.what());
    if (segmented.capture.has_ended()) throw;  // what has run as it is must not run twice
  };
  try {
    Capture made = capture(call, shape, options_.fullgraph ? nullptr : &segmented.capture);
    if (made.refusal.empty()) return made;
    note_unrepeatable(call, std::move(made));
    return std::nullopt;
  } catch (const capture::FakeError& error) {
    give_up(error);
  } catch (const shapes::ShapeError& error) {
    give_up(error);
  } catch (const RankAborted&) {
    throw;
  } catch (const KeptInRefusedCall& error) {
    agreement.fail(error.what());
    refuse(call, error.what());
    throw;
  } catch (const std::exception& error) {
    agreement.fail(error.what());
    throw;
  }
  if (!segmented.run.passed().empty()) {
    SegmentedCapture rest(*segmented.tree, segmented.owner, segmented.run);
    rest.stop_after_passed();
    capture(call, shape, &rest);
  }
  return std::nullopt;
}

// What the code did serves this call, and no other. A function may fill a cache in its first call; one that keeps
// tensors in the next call too does so always.
void Callable::Impl::note_unrepeatable(Call& call, Capture made) {
  call.cache.agreement.fail(made.refusal);
  if (!call.code.served) {
    call.code.served = CallResult{made.frame, by_operators(made.module)(values_of(made.inputs, call.leaves))};
  }
  capture::LeftFakes results;
  for (const auto& [fake, result] : made.kept_results) {
    results.of_inputs.emplace_back(fake, call.code.served->values[result].toTensor());
  }
  results.make_real({});
  if (made.keeps_tensors && ++call.cache.calls_that_kept < 2) return;
  if (options_.fullgraph)
    throw capture::NotCapturable(made.refusal + " Another one was kept in the call before", "", {});
  refuse(call, made.refusal);
}

SegmentOwner Callable::Impl::segment_owner(Call& call) {
  return {.function = options_.name,
          .backend = *call.cache.backend,
          .agreement = call.cache.agreement,
          .buckets = buckets()};
}

SegmentOwner Callable::Impl::growing_owner(Call& call) {
  SegmentOwner owner = segment_owner(call);
  owner.may_branch = [this, &call] { return may_compile(call); };
  return owner;
}

std::unique_ptr<Entry> Callable::Impl::capture_entry(Call& call) {
  // It does not run twice in a call: what ranks have just told each other counts from the next compilation on.
  if (call.now) return std::make_unique<Entry>(make_entry(call, std::move(*call.now)));
  SegmentRun run(call.leaves);
  Segmented segmented{std::make_shared<SegmentTree>(), run, segment_owner(call)};
  auto captured = try_segments(call, shape_of(view_of(call), call.cache.dynamism), segmented);
  if (!captured) return nullptr;
  if (!segmented.capture.was_cut()) return std::make_unique<Entry>(make_entry(call, std::move(*captured)));
  return make_segmented_entry(call, std::move(*captured), segmented);
}

std::unique_ptr<Entry> Callable::Impl::make_segmented_entry(Call& call, Capture captured, Segmented& segmented) {
  if (segmented.capture.has_ended()) {
    refuse(call, "an eager region changes what a tensor is, or gives one that shares memory with another");
    return nullptr;
  }
  if (segmented.run.changed_inputs()) {  // what guards say of a tensor holds before a call
    refuse(call, "what is behind a read needs that an argument, parameter or buffer begins to require grad");
    return nullptr;
  }
  auto entry = std::make_unique<Entry>();
  entry->capture = std::move(captured);
  entry->segments = segmented.tree;
  entry->number = call.cache.entries.size();
  entry->explanation.kept_by_reference = entry->capture.kept_by_reference;
  entry->explanation.graphs = segmented.capture.take_made();
  return entry;
}

// Follows the branches that are there. False: it has come to a value that has none.
bool Callable::Impl::run_compiled(Call& call, Entry& hit, SegmentRun& run) {
  for (Step* step = run.next(*hit.segments); step && !run.is_entangled(); step = run.next(*hit.segments)) {
    if (!step->read && !step->region) {
      call.code.served = CallResult{step->frame, run.run_last(*step)};
      note_hit(call, hit);
      return true;
    }
    run.run_segment(*step);
    run.run_end(*step);
    run.compare_next(call.cache.agreement);
  }
  return false;
}

const Entry* Callable::Impl::serve_in_segments(Call& call, Entry& hit) {
  const bool is_verification = is_to_be_verified(hit);
  SegmentRun run(call.leaves);
  if (!is_verification && run_compiled(call, hit, run)) return &hit;
  const RankCache::Lock lock(call.cache);
  // Another fiber may have added the branch meanwhile.
  if (!is_verification && run_compiled(call, hit, run)) return &hit;
  SegmentOwner owner = growing_owner(call);
  owner.refuse_change = is_verification;
  Segmented segmented{hit.segments, run, std::move(owner)};
  return run_live(call, hit, segmented, is_verification);
}

// Runs the user's code under the tracer, beside the tree.
const Entry* Callable::Impl::run_live(Call& call, Entry& hit, Segmented& segmented, bool is_verification) {
  if (is_verification) ++call.cache.stats.verifications;
  auto captured = try_segments(call, with_sizes_of(hit.capture.shape, call.leaves), segmented);
  hit.verified = hit.verified || is_verification;
  SegmentedCapture& capture = segmented.capture;
  if (!captured || capture.has_ended()) return run_eagerly(call);
  if (!capture.was_cut()) capture.throw_no_end(*captured->module);
  return note_path(call, hit, std::move(*captured), segmented);
}

// What the call has added to the tree of the entry, if it has.
const Entry* Callable::Impl::note_path(Call& call, Entry& entry, Capture captured, Segmented& segmented) {
  if (!segmented.capture.made_path()) return note_hit(call, entry);
  std::vector<GraphExplanation> made = segmented.capture.take_made();
  count_compile(call.cache.stats, made.size());
  entry.segments->guards.push_back(std::move(captured.guards));
  entry.explanation.graphs.insert(entry.explanation.graphs.end(), made.begin(), made.end());
  return &entry;
}

}  // namespace rehearse::compiler
