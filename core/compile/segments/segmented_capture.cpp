// SPDX-License-Identifier: BSD-3-Clause
#include "compile/segments/segmented_capture.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "compile/partitions/compile_partitions.h"
#include "compile/partitions/eager_backend.h"
#include "compile/segments/graph_difference.h"

namespace rehearse::compiler {
namespace {

bool same_end(const Step& a, const Step& b) {
  if (a.read.has_value() != b.read.has_value() || !a.region != !b.region) return false;
  if (a.read && !a.read->is_same(*b.read)) return false;
  if (!a.region) return a.read || a.constants == b.constants;
  return a.region->identity() == b.region->identity() && a.region_inputs == b.region_inputs &&
         a.region_grad_enabled == b.region_grad_enabled;
}

bool same_step(const Step& a, const Step& b) { return a.segment.is_same(b.segment) && same_end(a, b); }

std::string text_of_end(const Step& step) {
  if (!step.read && !step.region) return kEndOfFunction;
  const std::string line = step.where.describe();
  return (step.read ? "a read" : "an eager region") + (line.empty() ? "" : " at " + line);
}

std::string difference_of_steps(const Step& expected, const Step& found) {
  const bool same_end_in_kind = !expected.read == !found.read && !expected.region == !found.region;
  const std::string ends = text_of_end(expected);
  std::string difference = difference_of(*expected.segment.module, *found.segment.module, ends,
                                         same_end_in_kind ? ends : text_of_end(found));
  if (!difference.empty()) return difference;
  if (expected.segment.inputs != found.segment.inputs) return "it uses other tensors now";
  if (ends == kEndOfFunction) return "its results that are no tensors differ now";
  return fmt::format("it reached {} before, and reaches another one now: {}", ends, text_of_end(found));
}

}  // namespace

SegmentedCapture::SegmentedCapture(SegmentTree& tree, SegmentOwner owner, SegmentRun& run)
    : tree_(tree), owner_(std::move(owner)), run_(run) {}

void SegmentedCapture::bind(std::shared_ptr<shapes::ShapeEnv> shapes, const CapturedLeaves& leaves) {
  REHEARSE_CHECK(leaves_ == nullptr, owner_.function);
  shapes_ = std::move(shapes);
  leaves_ = &leaves;
}

InputBinding SegmentedCapture::input_of(const capture::Segment::Source& source) const {
  if (const auto* value = std::get_if<std::size_t>(&source)) {
    return {.kind = InputBinding::Kind::Value,
            .index = static_cast<std::uint32_t>(*value),
            .dimension = run_.tensors_before(*value)};
  }
  return binding_of(std::get<capture::GraphInput>(source), *leaves_);
}

BoundGraph SegmentedCapture::bound(const capture::Segment& segment) const {
  BoundGraph graph;
  graph.module = segment.module;
  graph.hash = graph::structural_hash(*segment.module, graph::Placeholders::OfAnyForm);
  for (const auto& source : segment.sources) graph.inputs.push_back(input_of(source));
  graph.border = BorderCheck(*segment.module, "the code behind a read or an eager region", [&](std::size_t input) {
    const bool is_value = graph.inputs[input].kind == InputBinding::Kind::Value;
    return is_value ? BorderLayout::Required : BorderLayout::Guarded;
  });
  return graph;
}

std::vector<Branch>& SegmentedCapture::branches() { return last_ ? last_->branches : tree_.roots; }

void SegmentedCapture::throw_no_end(const graph::GraphModule& now) const {
  REHEARSE_CHECK(!was_cut_ && !tree_.roots.empty(), owner_.function);
  const Step& first = *tree_.roots.front().next;
  const std::string difference = difference_of(*first.segment.module, now, text_of_end(first));
  if (!run_.passed().empty()) throw_not_repeatable(difference);
  throw_stale(owner_.function, difference);
}

void SegmentedCapture::throw_not_repeatable(const std::string& difference) const {
  throw NotRepeatable(fmt::format(
      "'{}' {}. Therefore its code ran again from the start, but did something else than the first time: {}. Make what "
      "differs an argument, or put it into an eager_region()",
      owner_.function,
      is_refused_ ? "does something that cannot be captured, after a read of data"
                  : "read a value for which no branch was compiled",
      difference));
}

// Returns the step of the tree that equals `step`. Adds `step` if the tree has none.
Step& SegmentedCapture::enter(Step step) {
  REHEARSE_CHECK(!ended_ && answered_ <= run_.passed().size(), owner_.function, answered_, run_.passed().size());
  if (answered_ < run_.passed().size()) {
    Step& expected = *run_.passed()[answered_].step;
    if (!same_step(expected, step)) throw_not_repeatable(difference_of_steps(expected, step));
    return expected;
  }
  const std::string key = answered_ == 0 ? "" : run_.passed()[answered_ - 1].key;
  std::vector<Branch>& branches = this->branches();
  Step* other = nullptr;
  for (Branch& branch : branches) {
    if (branch.key != key) continue;
    if (same_step(*branch.next, step)) return *branch.next;
    other = branch.next.get();
  }
  if (other && owner_.refuse_change) throw_stale(owner_.function, difference_of_steps(*other, step));
  if (other && !owner_.may_branch()) stop_ = true;
  branches.push_back({key, std::make_unique<Step>(std::move(step))});
  return *branches.back().next;
}

// The inputs of the segment have values already: they come from the call or from earlier segments.
ShardedInputs SegmentedCapture::sharded_inputs_of(const capture::Segment& segment) const {
  if (owner_.parts.units == nullptr) return {};
  std::vector<c10::IValue> values;
  for (const auto& source : segment.sources) values.push_back(run_.value(input_of(source)));
  return sharded_inputs(owner_.parts.units, values);
}

// Compiles a step that is not compiled, or that all ranks compile together. If ranks agree on what they compile, none
// of them runs the step before all have compiled it.
void SegmentedCapture::compile(Step& step, const capture::Segment& segment) {
  Agreement& agreement = owner_.agreement;
  if (step.segment.run && !agreement.is_open()) return ask_again(step);
  if (!agreement.is_open()) agreement.begin_segment("its code gives another graph", step.where);
  EagerBackend eager;
  Backend& backend = segment.writes_to_alias ? eager : owner_.backend;
  const std::size_t asked_before = shapes_->guards().size();
  CompiledPartitions parts =
      compile_partitions(segment.module, shapes_, backend, owner_.parts, {}, sharded_inputs_of(segment));
  step.asked.clear();
  for (std::size_t i = asked_before; i < shapes_->guards().size(); ++i) {
    step.asked.push_back(shapes_->guards()[i].condition);
  }
  if (parts.communicates || step.region) agreement.note_communication();
  pass_compile_time_of(parts.graphs, owner_.parts.pieces.cache);
  if (!agreement.commit(*step.segment.module, step.segment.inputs)) return run_.note_all_run_eagerly();
  step.segment.run = std::move(parts.run);
  for (GraphExplanation& graph : parts.graphs) made_.push_back(std::move(graph));
}

// Compiling the step may have fixed sizes, for example by recording a backward. Adds the guards of that compilation to
// this capture, so that the code behind the step sees the same fixed sizes.
void SegmentedCapture::ask_again(const Step& step) const {
  const auto is_known = [&](const std::string& symbol) { return shapes_->find_backed(symbol) != nullptr; };
  for (const shapes::Condition& condition : step.asked) {
    const std::vector<std::string> symbols = condition.symbols();
    if (std::ranges::all_of(symbols, is_known)) shapes_->guard(condition, "the segment in front of it");
  }
}

// Announces the segment behind a step before its code runs.
void SegmentedCapture::begin_next(const PassedStep& passed) {
  const std::string gave = passed.key.empty() ? "" : " that gave " + passed.key;
  owner_.agreement.begin_segment((passed.step->read ? "behind a read" : "behind an eager region") + gave,
                                 passed.step->where);
}

// Compares what the ranks can do with a segment whose code has run, unless they did so before it ran.
void SegmentedCapture::compare(const Step& step) {
  Agreement& agreement = owner_.agreement;
  const bool is_first = !std::exchange(was_cut_, true);
  if (!agreement.has_guard_collectives() || !(is_first || run_.owes_comparison())) return;
  const Ability able = step.segment.run ? Ability::serve : Ability::compile;
  const Ability own = stop_ ? Ability::run_eagerly : able;
  const Ability all = is_first ? owner_.compare_call(own) : run_.compare_owed(agreement, own);
  if (all == Ability::run_eagerly) run_.note_all_run_eagerly();
  const bool for_others = all == Ability::compile && own == Ability::serve && !agreement.is_open();
  if (for_others) agreement.begin_segment("another rank's code gives another graph", step.where);
}

void SegmentedCapture::compare_refusal() {
  if (run_.owes_comparison()) {
    run_.compare_owed(owner_.agreement, Ability::run_eagerly);
  } else if (!was_cut_) {
    owner_.compare_call(Ability::run_eagerly);
  }
}

// If all ranks run eagerly, the segment runs operator by operator.
std::optional<BoundGraph> SegmentedCapture::eager_twin_of(const Step& step) const {
  if (!run_.all_run_eagerly()) return std::nullopt;
  BoundGraph twin = step.segment;
  twin.run = by_operators(twin.module);
  return twin;
}

capture::SegmentAnswer SegmentedCapture::answer(Step found, const capture::SegmentEnd& end) {
  Step& step = enter(std::move(found));
  shapes_->count_backwards_apart();
  compare(step);
  if (!run_.all_run_eagerly()) compile(step, end.before);
  const auto eager = eager_twin_of(step);
  last_ = &step;
  if (answered_ == run_.passed().size()) {
    broken_ = true;
    run_.run_step(step, eager ? *eager : step.segment, owner_.agreement);
    broken_ = false;
    compare_next();
  }
  REHEARSE_CHECK(answered_ < run_.passed().size(), owner_.function, answered_, run_.passed().size());
  const PassedStep& passed = run_.passed()[answered_++];
  capture::SegmentAnswer answer{.values = passed.values, .result = passed.result};
  if (answered_ < run_.passed().size()) return answer;
  if (stop_ || run_.must_end() || !may_go_on(passed.key)) {
    compare_refusal();
    answer.value_of = end_with_values().value_of;
  } else if (!run_.owes_comparison() && !run_.next(tree_)) {
    begin_next(passed);
  }
  return answer;
}

void SegmentedCapture::compare_next() {
  if (owner_.compares_late) return run_.owe_comparison(owner_.agreement);
  run_.compare_next(owner_.agreement, [this](const PassedStep& passed) { return !stop_ && may_go_on(passed.key); });
}

capture::SegmentAnswer SegmentedCapture::end_with_values() {
  REHEARSE_CHECK(!ended_, owner_.function);
  ended_ = true;
  return {.values = {},
          .value_of = [this](const capture::Segment::Source& source) { return run_.value(input_of(source)); }};
}

std::function<c10::IValue(std::size_t number)> SegmentedCapture::find_value() const {
  if (broken_) return {};
  return [this](std::size_t number) { return number < run_.values() ? run_.value(input_of(number)) : c10::IValue(); };
}

bool SegmentedCapture::may_go_on(const std::string& key) const {
  return has_branch(*last_, key) || owner_.may_branch();
}

capture::SegmentAnswer SegmentedCapture::on_read(capture::SegmentEnd end) {
  Step step;
  step.segment = bound(end.before);
  step.read = bound(end.read);
  step.where = end.where;
  step.read->run = by_operators(step.read->module);
  return answer(std::move(step), end);
}

capture::SegmentAnswer SegmentedCapture::on_region(capture::SegmentEnd end,
                                                   const std::shared_ptr<const capture::EagerRegion>& region) {
  Step step;
  step.segment = bound(end.before);
  step.region = region;
  for (const auto& source : end.read.sources) step.region_inputs.push_back(input_of(source));
  step.region_grad_enabled = end.grad_enabled;
  step.where = end.where;
  return answer(std::move(step), end);
}

// Without an answer, the code gets the refusal. A verification must report that the code has changed. Code that runs
// again must first repeat the steps that the call has passed.
capture::SegmentAnswer SegmentedCapture::on_refusal(capture::SegmentEnd end, const std::string& why) {
  if (owner_.refuse_change || answered_ < run_.passed().size()) return {};
  // First, because the rest of the code may have collectives.
  compare_refusal();
  owner_.agreement.run_once(why);
  return run_unfinished(end);
}

capture::SegmentAnswer SegmentedCapture::run_unfinished(const capture::SegmentEnd& end) {
  if (broken_ || answered_ < run_.passed().size()) return {};
  Step step;
  step.segment = bound(end.before);
  step.segment.run = by_operators(end.before.module);
  broken_ = true;
  run_.run_segment(step.segment);
  broken_ = false;
  return end_with_values();
}

std::vector<c10::IValue> SegmentedCapture::finish(const capture::Segment& segment, std::vector<std::string> constants,
                                                  std::shared_ptr<const void> frame) {
  REHEARSE_CHECK(was_cut_, owner_.function);
  Step step;
  step.segment = bound(segment);
  step.constants = std::move(constants);
  step.frame = std::move(frame);
  Step& last = enter(std::move(step));
  compare(last);
  if (!run_.all_run_eagerly()) compile(last, segment);
  const auto eager = eager_twin_of(last);
  ended_ = eager.has_value();
  broken_ = true;
  std::vector<c10::IValue> results = run_.run(eager ? *eager : last.segment);
  broken_ = false;
  return results;
}

}  // namespace rehearse::compiler
