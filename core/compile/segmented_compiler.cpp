// SPDX-License-Identifier: BSD-3-Clause
#include "compile/segmented_compiler.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/left_fakes.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>

namespace rehearse::compiler {

SegmentOwner SegmentedCompiler::owner() const {
  return {.function = call_.options.name,
          .backend = *call_.cache.backend,
          .agreement = call_.cache.agreement,
          .parts = call_.parts(),
          .is_whole = call_.options.fullgraph};
}

SegmentOwner SegmentedCompiler::growing_owner() const {
  SegmentOwner owner = this->owner();
  owner.may_branch = [&entries = call_.cache.entries] { return entries.may_grow(); };
  return owner;
}

std::variant<Capture, Refused> SegmentedCompiler::capture(const std::vector<LeafShape>& shape, Segmented& segmented) {
  try {
    auto made = try_capture(shape, segmented);
    heed_refusal();
    return made;
  } catch (const RankAborted&) {
    throw;
  } catch (...) {
    heed_refusal();
    throw;
  }
}

void SegmentedCompiler::heed_refusal() {
  const std::string& refusal = call_.cache.agreement.refusal();
  if (!refusal.empty() && !call_.cache.entries.is_refused()) refuse(refusal);
}

// Tells the other ranks that this one keeps no graph of the call and runs what its code has recorded. They then do the
// same, so that the collectives in the recorded part meet. `refusal`: see BeforeRunningOnce.
void SegmentedCompiler::run_once(const std::string& refusal, bool keeps_tensors, Segmented& segmented) {
  segmented.capture.compare_refusal();
  const bool is_refused = !call_.options.fullgraph && (!keeps_tensors || call_.cache.entries.has_kept());
  call_.cache.agreement.run_once(is_refused ? refusal : "");
}

std::variant<Capture, Refused> SegmentedCompiler::try_capture(const std::vector<LeafShape>& shape,
                                                              Segmented& segmented) {
  Agreement& agreement = call_.cache.agreement;
  const auto before_running_once = [&](const std::string& refusal, bool keeps_tensors) {
    run_once(refusal, keeps_tensors, segmented);
  };
  try {
    Capture made = call_.capture(shape, call_.options.fullgraph ? nullptr : &segmented.capture, before_running_once);
    if (made.refusal.empty()) return made;
    return Refused{note_unrepeatable(std::move(made), segmented)};
  } catch (const capture::FakeError& error) {
    give_up(error, segmented);
  } catch (const shapes::ShapeError& error) {
    give_up(error, segmented);
  } catch (const RankAborted&) {
    throw;
  } catch (const KeptInRefusedCall& error) {
    segmented.capture.compare_refusal();
    agreement.fail(error.what());
    refuse(error.what());
    throw;
  } catch (const std::exception& error) {
    agreement.fail(error.what());
    throw;
  }
  return run_rest(shape, segmented);
}

// Called in the handler of `error`. Rethrows it if the code cannot run eagerly.
void SegmentedCompiler::give_up(const std::exception& error, Segmented& segmented) {
  // First, because the rest of the code may have collectives.
  segmented.capture.compare_refusal();
  const bool must_throw = call_.options.fullgraph || segmented.capture.is_broken();
  if (must_throw) {
    call_.cache.agreement.fail(error.what());
    throw;
  }
  call_.cache.agreement.run_once(error.what());
  refuse(error.what());
  if (segmented.capture.has_ended()) throw;  // code that ran eagerly must not run twice
}

// Throws CompileError if the code, which has run up to a read or region, cannot run again from its start.
void SegmentedCompiler::require_repeatable(const SegmentRun& run) {
  if (!run.changed_sizes()) return;
  const std::string why = fmt::format(
      "'{}' changes the sizes of an argument before it reads data or enters an eager region. To capture the code after "
      "that, the function would have to run again from its start, and would find the new sizes",
      call_.options.name);
  if (!call_.cache.entries.is_refused()) refuse(why);
  throw CompileError(why +
                     ". This call ends here; later calls run the function uncompiled. Change the sizes of a copy");
}

// The code was refused after the call had passed some steps. Runs the code again, up to the last of these steps under
// the tracer and from there on eagerly.
Refused SegmentedCompiler::run_rest(const std::vector<LeafShape>& shape, Segmented& segmented) {
  if (segmented.run.passed().empty()) return {};
  require_repeatable(segmented.run);
  SegmentedCapture rest(*segmented.tree, segmented.owner, segmented.run);
  rest.stop_before_refused();
  Capture done = call_.capture(shape, &rest);
  if (!rest.was_cut()) rest.throw_no_end(*done.module);
  return {std::move(done.served)};
}

// The recording serves only this call. A function that keeps tensors may be filling a cache in its first call. If it
// also keeps tensors in the next capture, it probably always does: then it runs eagerly from now on.
CallResult SegmentedCompiler::note_unrepeatable(Capture made, Segmented& segmented) {
  run_once(made.refusal, made.keeps_tensors, segmented);
  if (!made.served) made.served = call_.run(made);
  capture::LeftFakes results;
  for (const auto& [fake, result] : made.kept_results) {
    results.of_inputs.emplace_back(fake, made.served->values[result].toTensor());
  }
  results.make_real({});
  if (made.keeps_tensors && !call_.cache.entries.note_kept()) return std::move(*made.served);
  if (call_.options.fullgraph) {
    throw capture::NotCapturable(made.refusal + " Another one was kept in the call before", "", {});
  }
  refuse(made.refusal);
  return std::move(*made.served);
}

SegmentedCompiler::Made SegmentedCompiler::compile() {
  SegmentRun run(call_.leaves);
  Segmented segmented{std::make_shared<SegmentTree>(), run, owner()};
  auto made = capture(shape_of(call_.view(), call_.cache.dynamism), segmented);
  if (auto* const refused = std::get_if<Refused>(&made)) return {std::nullopt, std::move(refused->served)};
  auto& captured = std::get<Capture>(made);
  if (!segmented.capture.was_cut()) return {compile_entry(call_, std::move(captured)), std::nullopt};
  std::optional<CallResult> served = std::move(captured.served);
  return {make_entry(std::move(captured), segmented), std::move(served)};
}

std::optional<Entry> SegmentedCompiler::make_entry(Capture captured, Segmented& segmented) {
  REHEARSE_CHECK(segmented.capture.was_cut(), call_.options.name);
  if (segmented.capture.has_ended()) {
    if (call_.cache.agreement.runs_once()) return std::nullopt;
    refuse(segmented.run.is_entangled()
               ? "an eager region changes what a tensor is, or gives one that shares memory with another"
               : "another rank cannot compile the code behind a read or an eager region");
    return std::nullopt;
  }
  if (segmented.run.changed_inputs()) {  // no guard can check for this, because guards only see tensors before the call
    refuse("after a read of data, an argument, parameter or buffer begins to require grad");
    return std::nullopt;
  }
  Entry entry;
  entry.capture = std::move(captured);
  entry.segments = segmented.tree;
  entry.explanation.kept_by_reference = entry.capture.kept_by_reference;
  entry.explanation.graphs = segmented.capture.take_made();
  return entry;
}

// Follows existing branches. Returns nothing if a read or region gives a value without a branch, if a region changed
// tensors in a way that the branches do not expect, or if another rank must compile.
std::optional<CallResult> SegmentedCompiler::run_compiled(const Entry& hit, SegmentRun& run) {
  for (Step* step = run.next(*hit.segments); step && !run.must_end(); step = run.next(*hit.segments)) {
    if (!step->read && !step->region) return CallResult{step->frame, run.run_last(*step)};
    run.run_step(*step, step->segment, call_.cache.agreement);
    run.compare_next(call_.cache.agreement, [&](const PassedStep& passed) {
      return has_branch(*passed.step, passed.key) || call_.cache.entries.may_grow();
    });
  }
  return std::nullopt;
}

Answer SegmentedCompiler::serve(Entry& hit, bool verifies) {
  REHEARSE_CHECK(hit.segments != nullptr, call_.options.name, hit.number);
  SegmentRun run(call_.leaves);
  const auto serve_compiled = [&] { return verifies ? std::nullopt : run_compiled(hit, run); };
  if (auto served = serve_compiled()) return call_.hit(hit, std::move(served));
  const EntryCache::Lock lock(call_.cache.entries);
  // Another fiber may have added the branch meanwhile.
  if (auto served = serve_compiled()) return call_.hit(hit, std::move(served));
  SegmentOwner owner = growing_owner();
  owner.refuse_change = verifies;
  Segmented segmented{hit.segments, run, std::move(owner)};
  return run_live(hit, segmented);
}

Answer SegmentedCompiler::run_live(Entry& hit, Segmented& segmented) {
  const bool verifies = segmented.owner.refuse_change;
  require_repeatable(segmented.run);
  if (verifies) call_.cache.entries.note_verification();
  auto made = capture(with_sizes_of(hit.capture.shape, call_.leaves), segmented);
  hit.verified = hit.verified || verifies;
  if (auto* const refused = std::get_if<Refused>(&made)) return call_.eager(std::move(refused->served));
  auto& captured = std::get<Capture>(made);
  if (segmented.capture.has_ended()) return call_.eager(std::move(captured.served));
  if (!segmented.capture.was_cut()) segmented.capture.throw_no_end(*captured.module);
  return add_path(hit, std::move(captured), segmented);
}

Answer SegmentedCompiler::add_path(Entry& entry, Capture captured, Segmented& segmented) {
  REHEARSE_CHECK(captured.served.has_value() && entry.segments == segmented.tree, call_.options.name, entry.number);
  if (!segmented.capture.made_path()) return call_.hit(entry, std::move(captured.served));
  call_.cache.entries.add_path(entry, std::move(captured.guards), segmented.capture.take_made());
  return std::move(*captured.served);
}

}  // namespace rehearse::compiler
