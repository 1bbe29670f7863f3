// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/segment_recorder.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::capture {

using graph::Node;

SegmentEnd SegmentRecorder::end(const std::vector<Node*>& used, const Node* at) {
  SegmentEnd ended;
  ended.where = recording_.graph.site();
  std::vector<std::pair<std::uint64_t, Node*>> alive;
  std::set<const Node*> wanted(used.begin(), used.end());
  for (const Node* work : collectives_.nodes_of_works()) wanted.insert(work);
  for (const at::Tensor& fake : recording_.values.alive()) {
    Node& node = recording_.values.node_of(fake);
    alive.emplace_back(fake_id(fake), &node);
    wanted.insert(&node);
    recording_.segments.add_storage(node, fake);
  }
  const std::vector<std::pair<std::string, const Node*>> numbers = nodes_of_numbers();
  for (const auto& [symbol, node] : numbers) wanted.insert(node);
  note_memory_of_inputs();
  SegmentCutter& cutter = recording_.segments;
  ended.before = cutter.take(wanted, at);
  for (const auto& [id, node] : alive) ended.alive.push_back({id, cutter.source_of(*node)});
  for (const auto& [symbol, node] : numbers) ended.numbers.push_back({symbol, cutter.source_of(*node)});
  for (const Node* node : used) ended.read.sources.push_back(cutter.source_of(*node));
  was_cut_ = true;
  return ended;
}

// Nodes of numbers that depend on data.
std::vector<std::pair<std::string, const Node*>> SegmentRecorder::nodes_of_numbers() {
  std::vector<std::pair<std::string, const Node*>> nodes;
  for (const shapes::UnbackedSymbol& unbacked : recording_.shapes->unbacked()) {
    if (!recording_.symbols.knows_symbol(unbacked.name)) continue;
    nodes.emplace_back(unbacked.name, recording_.symbols.of(shapes::Expr::symbol(unbacked.name)).node());
  }
  return nodes;
}

// Notes the memory of the inputs, because a segment may write to an input of the call and read the same memory through
// a value of an earlier segment.
void SegmentRecorder::note_memory_of_inputs() {
  recording_.inputs.for_each_placed(
      [this](const Node& node, const at::Tensor& fake) { recording_.segments.add_storage(node, fake); });
}

// The code may hold items of lists, and works, that have no node yet. Adds their nodes to the segment that is about to
// end, and nodes for inputs whose requires_grad the code has switched.
void SegmentRecorder::bind_all() {
  recording_.values.record_switched_inputs();
  for (const at::Tensor& fake : recording_.values.alive()) recording_.values.node_of(fake);
  collectives_.nodes_of_works();
}

SegmentEnd SegmentRecorder::end_at_read(const c10::OperatorHandle& op, const Treatment& treatment,
                                        const torch::jit::Stack& arguments) {
  recording_.modes.leave();
  recording_.bind_sizes();
  CallArguments given = recording_.arguments_of(op.schema(), arguments);
  bind_all();
  Node& node = recording_.graph.call(treatment.target, std::move(given.args), std::move(given.kwargs));
  SegmentEnd ended = end(node.input_nodes(), &node);
  recording_.begin_next_segment();  // the read sees the histories that the ended segment gave to tensors
  ended.read = recording_.segments.take_single(node);
  has_values_ = recording_.segments.values() != 0;
  return ended;
}

SegmentRecorder::EndAtRegion SegmentRecorder::end_at_region(const EagerRegion& of,
                                                            const std::vector<at::Tensor>& tensors) {
  recording_.add_asserts();
  const bool grad_enabled = at::GradMode::is_enabled();
  recording_.modes.leave();
  if (recording_.modes.has_own_autocast()) {
    throw NotCapturable(of.title() + " is called where autocast was changed in the captured function",
                        "Change autocast inside of the region.", recording_.graph.site());
  }
  recording_.bind_sizes();
  graph::List arguments;
  std::vector<Node*> used;
  for (const at::Tensor& tensor : tensors) {
    used.push_back(&recording_.node_of(tensor));
    arguments.emplace_back(*used.back());
  }
  bind_all();
  Node& region = recording_.graph.call("rehearse.eager_region", std::move(arguments));
  SegmentEnd ended = end(used, &region);
  has_values_ = recording_.segments.values() != 0;
  ended.grad_enabled = grad_enabled;
  return {std::move(ended), region};
}

std::vector<at::Tensor> SegmentRecorder::take_results(Node& region, const std::vector<at::Tensor>& real) {
  std::vector<at::Tensor> fakes;
  for (std::size_t i = 0; i < real.size(); ++i) {
    Node& node = recording_.graph.call("rehearse.eager_result", {region, static_cast<std::int64_t>(i)});
    recording_.segments.add_value(node);
    if (!real[i].defined()) {
      fakes.emplace_back();
      continue;
    }
    at::Tensor fake = make_fake(spec_of(real[i]));
    node.meta().set_value(meta_of(fake));
    recording_.values.add(fake, node, {});
    recording_.segments.add_storage(node, fake);
    fakes.push_back(std::move(fake));
  }
  recording_.begin_next_segment();
  has_values_ = recording_.segments.values() != 0;
  return fakes;
}

std::optional<SegmentEnd> SegmentRecorder::end_for_good() {
  const bool differs = recording_.inputs.states().requires_grad_changed() || !caller_.has_process_modes();
  if (caller_.runs_backward() || differs) return std::nullopt;
  try {
    recording_.inputs.for_each(
        [this](const at::Tensor& fake, const at::Tensor&) { recording_.values.check_history(fake); });
    recording_.modes.leave();
    recording_.bind_sizes();
    bind_all();
    return end({}, nullptr);
  } catch (const FakeError&) {  // a custom autograd function made a tensor
    return std::nullopt;
  }
}

std::shared_ptr<Segment> SegmentRecorder::take_last(const graph::Argument& results) {
  if (!was_cut_) return nullptr;
  note_memory_of_inputs();
  return std::make_shared<Segment>(recording_.segments.take_last(results));
}

void SegmentRecorder::take_left(LeftFakes& left, const FindValue& find_value) {
  if (was_cut_ && !find_value) return;
  recording_.graph.set_origin({});
  recording_.modes.leave();
  std::vector<std::pair<at::Tensor, const Node*>> made;
  for (const at::Tensor& fake : recording_.values.alive()) {
    try {
      made.emplace_back(fake, &recording_.values.node_of(fake));
    } catch (const NotCapturable&) {  // autograd has seen the fake, so the fake has no node
    }
  }
  std::set<const Node*> wanted;
  for (const auto& [fake, node] : made) wanted.insert(node);
  const std::size_t known = recording_.segments.values();  // number of values of segments that have run
  left.segment = recording_.segments.take(wanted, nullptr);
  for (const auto& [fake, node] : made) {
    const Segment::Source source = recording_.segments.source_of(*node);
    const auto* const value = std::get_if<std::size_t>(&source);
    if (value && *value >= known) left.made.emplace_back(fake, *value - known);
    if (!value || *value >= known) continue;
    if (const c10::IValue found = find_value(*value); found.isTensor()) {
      left.of_inputs.emplace_back(fake, found.toTensor());
    }
  }
}

}  // namespace rehearse::capture
