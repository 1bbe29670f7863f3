// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/graph/structural_hash.h>
#include <rehearse_internal/shapes/errors.h>

#include "compile/callable_impl.h"
#include "compile/graph_difference.h"
#include "compile/parts/eager_backend.h"
#include "compile/segments/segmented.h"

namespace rehearse::compiler {
namespace {

// The arguments of both captures pass the same guards. These hold all that the graph needs to know of their forms.
bool same_function(const Capture& a, const Capture& b) {
  const auto hash_of = [](const Capture& capture) {
    return graph::structural_hash(*capture.module, graph::Placeholders::OfAnyForm);
  };
  return a.inputs == b.inputs && a.constants == b.constants && hash_of(a) == hash_of(b);
}

std::string text_of_use(const graph::Node& placeholder) {
  return placeholder.users().empty() ? "the result" : text_of_node(**placeholder.users().begin());
}

std::string first_difference(const Capture& before, const Capture& now) {
  if (std::string told = difference_of(*before.module, *now.module); !told.empty()) return told;
  const auto placeholders = now.module->graph().placeholders();
  for (std::size_t i = 0; i < std::min(before.inputs.size(), now.inputs.size()); ++i) {
    if (before.inputs[i] == now.inputs[i]) continue;
    return fmt::format("'{}', which {} uses, is another tensor now", now.input_names[i], text_of_use(*placeholders[i]));
  }
  if (before.constants == now.constants) return "a tensor that it uses and that is no argument has another form now";
  return fmt::format("beside tensors it returned {}, and returns {} now", fmt::join(before.constants, ", "),
                     fmt::join(now.constants, ", "));
}

// A tree whose only way is the entry's graph: whatever else the code does is another way.
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

}  // namespace

bool Callable::Impl::is_to_be_verified(const Entry& entry) const {
  return options_.verify == Verify::FirstHit && !entry.verified;
}

const Entry* Callable::Impl::verify(Call& call, Entry& hit) {
  ++call.cache.stats.verifications;
  SegmentRun run(call.leaves);
  SegmentOwner owner = segment_owner(call);
  owner.refuse_change = true;
  Segmented expected{tree_of(hit.capture), run, std::move(owner)};
  try {
    const Capture now = capture(call, hit.capture.shape, &expected.capture);
    if (!now.refusal.empty()) throw_stale(options_.name, now.refusal);
    if (!same_function(hit.capture, now)) throw_stale(options_.name, first_difference(hit.capture, now));
  } catch (const KeptInRefusedCall& error) {
    throw_stale(options_.name, error.what());
  } catch (const capture::FakeError& error) {
    throw_stale(options_.name, fmt::format("it cannot be captured any more ({})", error.what()));
  } catch (const shapes::ShapeError& error) {
    throw_stale(options_.name, fmt::format("it cannot be captured any more ({})", error.what()));
  }
  hit.verified = true;
  return note_hit(call, hit);
}

// An entry for code that reads data, all of whose guards hold.
Entry* Callable::Impl::find_in_segments(const Call& call) const {
  for (Entry* entry : call.cache.by_use) {
    if (entry->segments && entry->holds(call.leaves, call.state)) return entry;
  }
  return nullptr;
}

// An entry with the graph that the code has given in this call.
Entry* Callable::Impl::find_as_now(const Call& call) const {
  for (Entry* entry : call.cache.by_use) {
    if (entry->segments || !entry->holds(call.leaves, call.state)) continue;
    if (same_function(entry->capture, *call.now)) return entry;
  }
  return nullptr;
}

// The code runs once, as it does without compile(), and what it does now serves the call: an entry where one has the
// same graph, else a new one. Ranks that compare what they have do so when that is known.
const Entry* Callable::Impl::verify_always(Call& call, Entry& hit) {
  const bool is_refused = !call.cache.refusal.empty();
  Entry* const known = is_refused ? nullptr : hit.segments ? &hit : find_in_segments(call);
  if ((is_refused || known) && !is_served(call, true)) return miss(call, true);
  std::optional<RankCache::Lock> lock(call.cache);
  // Another fiber may have refused it meanwhile.
  if (!call.cache.refusal.empty()) return run_eagerly(call);
  const Entry* const served =
      run_verified(call, known, with_sizes_of((known ? *known : hit).capture.shape, call.leaves));
  if (!call.now) return served;
  lock.reset();
  return serve_as_now(call);
}

// Null: the call has run eagerly, at least its end, or its code has no read and is in `call.now`.
const Entry* Callable::Impl::run_verified(Call& call, Entry* known, const std::vector<LeafShape>& shape) {
  ++call.cache.stats.verifications;
  SegmentRun run(call.leaves);
  SegmentOwner owner = growing_owner(call);
  if (!known) owner.before_first_read = [&] { is_served(call, false); };
  Segmented segmented{known ? known->segments : std::make_shared<SegmentTree>(), run, std::move(owner)};
  const bool is_full = !known && call.cache.paths() >= options_.recompile_limit;
  if (is_full) segmented.capture.stop_after_passed();
  auto captured = try_segments(call, shape, segmented);
  if (captured && !segmented.capture.has_ended()) return note_verified(call, known, std::move(*captured), segmented);
  if (captured && is_full) may_compile(call);  // warns
  return run_eagerly(call);
}

const Entry* Callable::Impl::note_verified(Call& call, Entry* known, Capture captured, Segmented& segmented) {
  if (!segmented.capture.was_cut()) {
    call.now = std::make_unique<Capture>(std::move(captured));
    return nullptr;
  }
  if (known) return note_path(call, *known, std::move(captured), segmented);
  note_failures(call, false);
  const auto made = make_segmented_entry(call, std::move(captured), segmented);
  return made ? add_entry(call, std::move(*made)) : nullptr;
}

const Entry* Callable::Impl::serve_as_now(Call& call) {
  Entry* const same = find_as_now(call);
  if (!is_served(call, same != nullptr)) return miss(call, same != nullptr);
  return note_hit(call, *same);
}

}  // namespace rehearse::compiler
