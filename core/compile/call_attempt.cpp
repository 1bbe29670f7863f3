// SPDX-License-Identifier: BSD-3-Clause
#include "compile/call_attempt.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/graph/structural_hash.h>
#include <rehearse_internal/hash/fnv1a.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "checks/values/module_tensors.h"
#include "compile/arguments/marks.h"
#include "compile/compiler_collectives/compiler_collectives.h"
#include "compile/guards/global_state.h"
#include "compile/segments/graph_difference.h"

namespace rehearse::compiler {
namespace {

std::string text_of_use(const graph::Node& placeholder) {
  return placeholder.users().empty() ? "the result" : text_of_node(**placeholder.users().begin());
}

std::string first_difference(const Capture& before, const Capture& now) {
  if (std::string difference = difference_of(*before.module, *now.module); !difference.empty()) return difference;
  const auto placeholders = now.module->graph().placeholders();
  for (std::size_t i = 0; i < std::min(before.inputs.size(), now.inputs.size()); ++i) {
    if (before.inputs[i] == now.inputs[i]) continue;
    return fmt::format("'{}', which {} uses, is another tensor now", now.input_names[i], text_of_use(*placeholders[i]));
  }
  if (before.constants == now.constants) return "a tensor that it uses and that is no argument has another form now";
  return fmt::format("its results that are no tensors were {}, and are {} now", fmt::join(before.constants, ", "),
                     fmt::join(now.constants, ", "));
}

// A tree that contains only the entry's graph. SegmentedCapture throws StaleCapture if the code comes to a read or an
// eager region, because the tree has none.
std::shared_ptr<SegmentTree> tree_of(const Capture& capture) {
  auto step = std::make_unique<Step>();
  step->segment = {.module = capture.module,
                   .hash = graph::structural_hash(*capture.module, graph::Placeholders::OfAnyForm),
                   .inputs = capture.inputs,
                   .run = {}};
  step->constants = capture.constants;
  auto tree = std::make_shared<SegmentTree>();
  tree->roots.push_back({"", std::move(step)});
  return tree;
}

std::string text_of_argument(const Leaf& leaf, const LeafShape& shape) {
  if (leaf.kind == LeafKind::Group || shape.symbolic_int) return std::string(text_of(leaf.kind));
  if (leaf.kind != LeafKind::Tensor) return exact_text_of(leaf);
  std::string text = fmt::format("{} {}", c10::toString(leaf.tensor->scalar_type()), leaf.tensor->requires_grad());
  for (std::size_t d = 0; d < shape.varies.size(); ++d) {
    text += shape.varies[d] ? " n" : fmt::format(" {}", shape.sizes[d]);
  }
  return text;
}

bool is_same_tensor(const Leaf& a, const Leaf& b) {
  return a.kind == LeafKind::Tensor && b.kind == LeafKind::Tensor && a.tensor->is_same(*b.tensor);
}

// The parameters of the module, or the tensors that the function uses.
std::string text_of_tensors(const CallView& call, const Capture& capture) {
  std::string text;
  const auto add = [&text](const at::Tensor& tensor) {
    text += fmt::format("{} {}\n", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), " "));
  };
  if (call.module) {
    for (const auto& each : checks::parameters_of(*call.module)) add(each.tensor);
  }
  for (const InputBinding& input : capture.inputs) {
    if (!call.module && input.kind == InputBinding::Kind::Captured) add(input.tensor);
  }
  return text;
}

// A hash of the guards of a captured call, as far as they mean the same on all ranks: arguments, conditions on sizes,
// modes, and watched numbers and texts. If the ranks of a group compile together, the hash tells groups apart. Else it
// has the type of the function and the sizes of the parameters, because ranks may be stages of a pipeline.
std::uint64_t compared_guards(const CallView& call, const Capture& capture, const CompileOptions& options) {
  const GlobalState& state = call.state;
  std::string text = options.group ? fmt::format("{}", fmt::join(world_ranks_of(*options.group.get()), " "))
                                   : state.types->name() + text_of_tensors(call, capture);
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    text += fmt::format("\n{} {}", call.sources[i], text_of_argument(call.leaves[i], capture.shape[i]));
    for (std::size_t j = 0; j < i && call.leaves[i].kind == LeafKind::Tensor; ++j) {
      if (is_same_tensor(call.leaves[j], call.leaves[i])) text += " is " + call.sources[j];
    }
  }
  for (const shapes::Guard& guard : capture.shapes->guards()) text += "\n" + guard.condition.text();
  const bool trains = call.module ? call.module->is_training() : state.module_modes == 0;
  text += fmt::format("\n{} {} {} {} {}\n{}", trains, state.grad_mode, state.inference_mode,
                      fmt::join(state.autocast, " "), c10::toString(state.default_dtype), capture.guards.watched());
  return fnv1a(text);
}

}  // namespace

Capture Verifier::capture_beside(const Entry& hit) {
  const std::string& function = call_.options.name;
  SegmentRun run(call_.leaves);
  SegmentOwner owner = segments_.owner();
  owner.refuse_change = true;
  Segmented expected{tree_of(hit.capture), run, std::move(owner)};
  try {
    return call_.capture(hit.capture.shape, &expected.capture);
  } catch (const KeptInRefusedCall& error) {
    throw_stale(function, error.what());
  } catch (const capture::FakeError& error) {
    throw_stale(function, fmt::format("it cannot be captured any more ({})", error.what()));
  } catch (const shapes::ShapeError& error) {
    throw_stale(function, fmt::format("it cannot be captured any more ({})", error.what()));
  }
}

void Verifier::check(Entry& hit) {
  REHEARSE_CHECK(!hit.segments && !hit.verified, call_.options.name, hit.number);
  call_.cache.entries.note_verification();
  const Capture now = capture_beside(hit);
  if (!now.refusal.empty()) throw_stale(call_.options.name, now.refusal);
  if (!same_function(hit.capture, now)) throw_stale(call_.options.name, first_difference(hit.capture, now));
  hit.verified = true;
}

std::variant<Answer, Capture> Verifier::run(Entry* known, const std::vector<LeafShape>& shape,
                                            const std::function<Ability(Ability)>& compare) {
  EntryCache& entries = call_.cache.entries;
  entries.note_verification();
  SegmentRun run(call_.leaves);
  SegmentOwner owner = segments_.growing_owner();
  owner.compare_call = compare;
  owner.compares_late = known != nullptr;
  Segmented segmented{known ? known->segments : std::make_shared<SegmentTree>(), run, std::move(owner)};
  const bool is_full = !known && entries.is_full();
  if (is_full) segmented.capture.stop_after_passed();
  auto made = segments_.capture(shape, segmented);
  if (auto* const refused = std::get_if<Refused>(&made)) return call_.eager(std::move(refused->served));
  auto& captured = std::get<Capture>(made);
  if (!segmented.capture.has_ended()) return note(known, std::move(captured), segmented);
  if (is_full) entries.may_grow();  // warns that the cache is full
  return call_.eager(std::move(captured.served));
}

std::variant<Answer, Capture> Verifier::note(Entry* known, Capture captured, Segmented& segmented) {
  if (!segmented.capture.was_cut()) return captured;
  if (known) return segments_.add_path(*known, std::move(captured), segmented);
  EntryCache& entries = call_.cache.entries;
  entries.note_failures(call_.leaves, call_.state, false);
  std::optional<CallResult> served = std::move(captured.served);
  REHEARSE_CHECK(served.has_value(), call_.options.name);
  if (auto made = segments_.make_entry(std::move(captured), segmented)) entries.add(std::move(*made));
  return Answer(std::move(*served));
}

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
    const bool is_kept = agreement.commit(*capture.module, capture.inputs);
    segments_.heed_refusal();
    if (!is_kept) return call_.eager(call_.run(capture));
  }
  agreement.compare_under(compared_guards(view, made.entry->capture, call_.options));
  Entry& entry = cache.entries.add(std::move(*made.entry));
  if (made.served) return std::move(*made.served);
  return ByGraph{&entry};
}

}  // namespace rehearse::compiler
