// SPDX-License-Identifier: BSD-3-Clause
// Where a capture goes on behind a read of data or an eager region.
#include <map>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/custom_class.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/fake/become_real.h"
#include "capture/fake/fake_impl.h"
#include "capture/trace/caller/call_modes.h"
#include "capture/trace/caller/call_stack.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {

using graph::Node;

SegmentEnd Tracer::end_segment(std::vector<Node*> used, const Node* end) {
  SegmentEnd ended;
  ended.where = graph_.site();
  std::vector<std::pair<std::uint64_t, Node*>> alive;
  std::set<const Node*> wanted(used.begin(), used.end());
  for (const Node* work : nodes_of_works()) wanted.insert(work);
  for (const at::Tensor& fake : values_.alive()) {
    Node& node = values_.node_of(fake);
    alive.emplace_back(fake_id(fake), &node);
    wanted.insert(&node);
    segments_.add_storage(node, fake);
  }
  const std::vector<std::pair<std::string, const Node*>> numbers = nodes_of_numbers();
  for (const auto& [symbol, node] : numbers) wanted.insert(node);
  note_memory_of_inputs();
  ended.before = segments_.take(wanted, end);
  for (const auto& [id, node] : alive) ended.alive.push_back({id, segments_.source_of(*node)});
  for (const auto& [symbol, node] : numbers) ended.numbers.push_back({symbol, segments_.source_of(*node)});
  for (const Node* node : used) ended.read.sources.push_back(segments_.source_of(*node));
  was_cut_ = true;
  return ended;
}

// Of numbers that only data tells.
std::vector<std::pair<std::string, const Node*>> Tracer::nodes_of_numbers() {
  std::vector<std::pair<std::string, const Node*>> nodes;
  for (const shapes::UnbackedSymbol& unbacked : shapes_->unbacked()) {
    if (!symbols_.knows_symbol(unbacked.name)) continue;
    nodes.emplace_back(unbacked.name, symbols_.of(shapes::Expr::symbol(unbacked.name)).node());
  }
  return nodes;
}

// A segment may write to an input of the call and read the same memory as a value of an earlier segment.
void Tracer::note_memory_of_inputs() {
  inputs_.for_each_placed([this](const Node& node, const at::Tensor& fake) { segments_.add_storage(node, fake); });
}

// The symbols of sizes that only data tells are integers of the segment that knows them.
void Tracer::bind_sizes() {
  for (const auto& [symbol, source] : sizes_) {
    if (!symbols_.knows_symbol(symbol)) node_of_symbol(symbol);
  }
}

// What fails between two segments has failed for good, whatever the code makes of it.
SegmentAnswer Tracer::ask(const std::function<SegmentAnswer()>& listener) {
  if (refusal_) std::rethrow_exception(refusal_);
  const Suspension suspended(*this);
  try {
    SegmentAnswer answer = listener();
    inputs_.states().renew();
    asserts_added_ = shapes_->asserts().size();  // what a back end has stated is in its own graphs
    return answer;
  } catch (...) {
    note_refusal(std::current_exception());
    throw;
  }
}

c10::IValue Tracer::read(const c10::OperatorHandle& op, const Treatment& treatment,
                         const torch::jit::Stack& arguments) {
  if (listener_ == nullptr) throw DataDependentRead(op.schema().name(), graph_.site());
  if (refusal_) std::rethrow_exception(refusal_);
  modes_.leave();
  bind_sizes();
  CallArguments given = to_arguments(op.schema(), arguments, context_);
  for (const at::Tensor& fake : values_.alive()) values_.node_of(fake);  // items become nodes of this segment
  nodes_of_works();
  Node& node = graph_.call(treatment.target, std::move(given.args), std::move(given.kwargs));
  SegmentEnd end = end_segment(node.input_nodes(), &node);
  end.read = segments_.take_single(node);
  segments_.begin_next(brought_);
  const Held held{end.alive, end.numbers};
  check_after_code();
  const SegmentAnswer answer = ask([&] { return listener_->on_read(std::move(end)); });
  take_answer(answer, held);
  return answer.values.at(0);
}

std::shared_ptr<RegionResult> Tracer::end_at_region(const std::shared_ptr<const EagerRegion>& region,
                                                    const std::vector<at::Tensor>& tensors) {
  if (rest_) {
    std::vector<at::Tensor> real;
    for (const at::Tensor& tensor : tensors) real.push_back(rest_->real_tensor(tensor));
    const Outside outside;
    return region->run(std::move(real));
  }
  const InOperator inside(*this);
  graph_.set_origin(call_stack());
  check_modes();
  if (listener_ == nullptr) {
    throw NotCapturable("eager_region() is called in a function that must be one graph (fullgraph)",
                        "Compile without fullgraph, or call it outside of the compiled function.", graph_.site());
  }
  if (refusal_) std::rethrow_exception(refusal_);
  add_asserts();
  const bool grad_enabled = at::GradMode::is_enabled();
  modes_.leave();
  if (modes_.has_own_autocast()) {
    throw NotCapturable("eager_region() is called where autocast was changed in the captured function",
                        "Change autocast inside of the region.", graph_.site());
  }
  bind_sizes();
  graph::List arguments;
  std::vector<Node*> used;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    used.push_back(&node_of(tensor));
    arguments.emplace_back(*used.back());
  }
  for (const at::Tensor& fake : values_.alive()) values_.node_of(fake);
  nodes_of_works();
  Node& node = graph_.call("rehearse.eager_region", std::move(arguments));
  SegmentEnd end = end_segment(used, &node);
  end.grad_enabled = grad_enabled;
  const Held held{end.alive, end.numbers};
  check_after_code();
  const SegmentAnswer answer = ask([&] { return listener_->on_region(std::move(end), region); });
  std::vector<at::Tensor> real;
  for (const c10::IValue& value : answer.values) real.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
  take_answer(answer, held);
  answer.result->replace(rest_ ? real : fakes_of_region(real, node));
  segments_.begin_next(brought_);
  return answer.result;
}

std::vector<at::Tensor> Tracer::fakes_of_region(const std::vector<at::Tensor>& values, Node& region) {
  std::vector<at::Tensor> fakes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const at::Tensor& real = values[i];
    Node& node = graph_.call("rehearse.eager_result", {region, static_cast<std::int64_t>(i)});
    segments_.add_value(node);
    if (!real.defined()) {
      fakes.emplace_back();
      continue;
    }
    at::Tensor fake = make_fake(spec_of(real));
    node.meta().set_value(meta_of(fake));
    values_.add(fake, node, {});
    segments_.add_storage(node, fake);
    fakes.push_back(std::move(fake));
  }
  return fakes;
}

// What was recorded, where the values that the code holds can be told from it alone.
std::optional<SegmentEnd> Tracer::end_for_good() {
  const bool runs_backward = torch::autograd::get_current_graph_task_id() != -1;
  const bool differs =
      inputs_.states().requires_grad_changed() || c10::get_default_dtype_as_scalartype() != default_dtype_;
  if (rest_ || refusal_ || runs_backward || differs) return std::nullopt;
  try {
    inputs_.for_each([this](const at::Tensor& fake, const at::Tensor&) { values_.check_history(fake); });
    modes_.leave();
    bind_sizes();
    for (const at::Tensor& fake : values_.alive()) values_.node_of(fake);
    nodes_of_works();
    return end_segment({}, nullptr);
  } catch (const FakeError&) {  // a custom function of autograd has made a tensor
    return std::nullopt;
  }
}

bool Tracer::go_on_eagerly(const std::exception& refusal) {
  if (listener_ == nullptr || is_called_by_gradients()) return false;
  const InOperator inside(*this);  // what autograd is asked here is no question of the code
  std::optional<SegmentEnd> end = end_for_good();
  if (!end) return false;
  const Held held{end->alive, end->numbers};
  const SegmentAnswer answer = ask([&] { return listener_->on_refusal(std::move(*end), refusal.what()); });
  if (!answer.value_of) return false;
  ended_by_ = refusal.what();
  take_answer(answer, held);
  return true;
}

void Tracer::end_with(const NotCapturable& refusal) {
  if (!rest_) go_on_eagerly(refusal);  // what has run must not run twice
  note_refusal(std::make_exception_ptr(refusal));
  throw refusal;
}

void Tracer::take_answer(const SegmentAnswer& answer, const Held& held) {
  if (!answer.value_of) return;
  for (const LiveNumber& number : held.numbers) shapes_->tell(number.symbol, answer.value_of(number.source).toInt());
  rest_ = std::make_unique<EagerRest>(inputs_, held.tensors, answer.value_of);
  make_real(held.tensors, answer.value_of);
  inputs_.for_each([](const at::Tensor& fake, const at::Tensor& real) { fake_impl(fake)->take_memory(real); });
  if (generator_) generator_->leave();
  mode_.end();
  for (const auto& work : works_.alive()) {
    const c10::IValue value = answer.value_of(segments_.source_of(work->node(graph_)));
    works_.set_real(*work, value.toCustomClass<c10d::Work>());
  }
}

// What the code holds and the call has not brought is from now on the real tensor itself, where no other object is. In
// order of their making: a base comes before its views.
void Tracer::make_real(const std::vector<LiveValue>& alive, const EagerRest::ValueOf& value_of) {
  std::map<std::uint64_t, at::Tensor> fakes;
  for (const at::Tensor& fake : values_.alive()) fakes.emplace(fake_id(fake), fake);
  std::map<const c10::TensorImpl*, std::size_t> uses;
  for (const LiveValue& live : alive) {
    const c10::IValue value = value_of(live.source);
    if (value.isTensor()) ++uses[value.toTensor().unsafeGetTensorImpl()];
  }
  std::map<const c10::TensorImpl*, at::Tensor> handles;
  const HandleOf handle_of = [&](const at::Tensor& real) {
    const auto found = handles.find(real.unsafeGetTensorImpl());
    return found != handles.end() ? found->second : real;
  };
  for (const LiveValue& live : alive) {
    const auto fake = fakes.find(live.fake_id);
    if (fake == fakes.end() || inputs_.find(live.fake_id) != nullptr) continue;
    const c10::IValue value = value_of(live.source);
    if (!value.isTensor()) continue;
    const at::Tensor real = value.toTensor();
    // Two fakes may stand for one tensor: y and y.contiguous(). And one for the caller's own: contiguous() of it.
    if (uses.at(real.unsafeGetTensorImpl()) > 1 || inputs_.has(real)) {
      stand_ins_.emplace_back(fake->second, real);
      continue;
    }
    become_real(fake->second, real, handle_of);
    handles.emplace(real.unsafeGetTensorImpl(), fake->second);
  }
}

std::shared_ptr<RegionResult> run_region(const std::shared_ptr<const EagerRegion>& region,
                                         std::vector<at::Tensor> tensors) {
  if (Tracer* const tracer = Tracer::current()) return tracer->end_at_region(region, tensors);
  return region->run(std::move(tensors));
}

}  // namespace rehearse::capture
