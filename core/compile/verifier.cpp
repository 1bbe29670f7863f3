// SPDX-License-Identifier: BSD-3-Clause
#include "compile/verifier.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/graph/structural_hash.h>

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

}  // namespace rehearse::compiler
