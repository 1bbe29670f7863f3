// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/collective_recorder.h"

#include <string>
#include <utility>

#include <torch/custom_class.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/operators/group_use.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/requires_grad.h"
#include "capture/trace/recorders/current_tracer.h"
#include "graph/run/call/communication.h"

namespace rehearse::capture {

using graph::Node;
using torch::jit::Stack;

namespace {

graph::ValueMeta meta_of_written(const c10::IValue& value) {
  if (value.isTensor()) return meta_of(value.toTensor());
  graph::ValueMeta::List items;
  for (const c10::IValue& item : value.toListRef()) items.push_back(meta_of_written(item));
  return items;
}

}  // namespace

Node& CapturedWork::node(GraphBuilder& graph) {
  if (!is_item_) return call_;
  if (item_ == nullptr) item_ = &graph.item(call_, 1);
  return *item_;
}

bool CapturedWork::wait(std::chrono::milliseconds timeout) { return recorder().wait(*this, timeout); }

void CapturedWork::synchronize() { recorder().synchronize(*this); }

CollectiveRecorder& CapturedWork::recorder() const {
  if (tracer_ != nullptr && current_tracer() == tracer_) return recorder_;
  throw NotCapturable("a Work of a captured call is used outside of the captured function",
                      "Wait for it in the function that made the call.", call_stack());
}

void CapturedWork::refuse(const char* method) const {
  throw NotCapturable(std::string("Work::") + method + "() is called on a Work of a captured call",
                      "Wait for it with wait(), or put the call into a rehearse::eager_region().", call_stack());
}

CapturedWorks::~CapturedWorks() {
  for (const auto& work : alive()) work->end_of_capture();
}

c10::intrusive_ptr<c10d::Work> CapturedWorks::make(const Tracer& tracer, CollectiveRecorder& recorder, Node& call,
                                                   bool is_item) {
  auto work = c10::make_intrusive<CapturedWork>(tracer, recorder, call, is_item);
  made_.emplace_back(work);
  return work;
}

std::vector<c10::intrusive_ptr<CapturedWork>> CapturedWorks::alive() const {
  std::vector<c10::intrusive_ptr<CapturedWork>> alive;
  for (const auto& made : made_) {
    if (auto work = made.lock()) alive.push_back(std::move(work));
  }
  return alive;
}

void CapturedWorks::check_outlived() const {
  const auto alive = this->alive();
  if (alive.empty()) return;
  throw NotCapturable("a Work outlives the captured function that made the call",
                      "Wait for it in the function, or make the call outside of it.",
                      alive.front()->call().meta().origin->site);
}

void CapturedWorks::set_real(const CapturedWork& work, c10::intrusive_ptr<c10d::Work> real) {
  REHEARSE_CHECK(!real_.contains(&work), real_.size());
  real_.emplace(&work, std::move(real));
}

c10d::Work* CapturedWorks::find_real(const CapturedWork& work) const {
  const auto found = real_.find(&work);
  return found == real_.end() ? nullptr : found->second.get();
}

void CollectiveRecorder::note_communication() {
  const std::string* const label = comm::current_label();
  const bool is_own = label != nullptr && *label != caller_.label();
  recording_.graph.set_communication(addresses_within(caller_.outside()),
                                     is_own ? std::optional(*label) : std::nullopt);
}

void CollectiveRecorder::record(const c10::OperatorHandle& op, const Treatment& treatment, Stack& arguments) {
  for (const c10::IValue& argument : arguments) {
    if (const auto group = graph::group_of_object(argument)) operators::note_group_use(nullptr, group.get());
  }
  recording_.modes.sync();
  CallArguments given = recording_.arguments_of(op.schema(), arguments);
  // ProcessGroup::barrier() keeps its tensor in a static variable until any rank calls barrier() again.
  if (treatment.name == "c10d::barrier") recording_.values.disown(arguments.front().toTensor());
  Node& node = recording_.graph.call(treatment.target, std::move(given.args), std::move(given.kwargs));
  recording_.segments.note_write();
  const std::size_t returns = op.schema().returns().size();
  REHEARSE_CHECK(returns <= 2, treatment.target, returns);
  const bool gives_tensors = returns == 2;
  Stack results;
  if (gives_tensors) results.push_back(arguments.front());
  if (returns > 0) results.emplace_back(works_.make(tracer_, *this, node, gives_tensors));
  set_requires_grad(treatment, arguments, results);
  if (gives_tensors) {
    node.meta().set_value(graph::ValueMeta::List{meta_of_written(arguments.front()), graph::ValueMeta()});
    note_written(arguments.front(), node, {0});
  } else {
    node.meta().set_value({});
  }
  arguments = std::move(results);
}

void CollectiveRecorder::note_written(const c10::IValue& value, Node& node, std::vector<std::int64_t> path) {
  if (value.isTensor()) return recording_.values.add(value.toTensor(), node, std::move(path));
  path.push_back(0);
  for (const c10::IValue& item : value.toListRef()) {
    note_written(item, node, path);
    ++path.back();
  }
}

bool CollectiveRecorder::wait(CapturedWork& work, std::chrono::milliseconds timeout) {
  if (c10d::Work* const real = works_.find_real(work)) {
    const FakeMode::Pause paused;
    return real->wait(timeout);
  }
  graph::List arguments;
  if (timeout != kNoTimeout) arguments.emplace_back(timeout.count());
  record_method(work, "wait", std::move(arguments));
  return true;
}

void CollectiveRecorder::synchronize(CapturedWork& work) {
  if (c10d::Work* const real = works_.find_real(work)) return real->synchronize();
  record_method(work, "synchronize", {});
}

void CollectiveRecorder::record_method(CapturedWork& work, const char* method, graph::List arguments) {
  REHEARSE_CHECK(!recording_.mode.has_ended(), method);
  recording_.add_asserts();
  recording_.graph.set_origin(call_stack());
  caller_.check(recording_.graph.site());
  note_communication();
  recording_.modes.sync();
  arguments.insert(arguments.begin(), work.node(recording_.graph));
  recording_.graph.method(method, std::move(arguments));
}

std::vector<Node*> CollectiveRecorder::nodes_of_works() {
  std::vector<Node*> nodes;
  for (const auto& work : works_.alive()) nodes.push_back(&work->node(recording_.graph));
  return nodes;
}

void CollectiveRecorder::set_real(const std::function<c10::IValue(const Segment::Source&)>& value_of) {
  for (const auto& work : works_.alive()) {
    const c10::IValue value = value_of(recording_.segments.source_of(work->node(recording_.graph)));
    works_.set_real(*work, value.toCustomClass<c10d::Work>());
  }
}

}  // namespace rehearse::capture
