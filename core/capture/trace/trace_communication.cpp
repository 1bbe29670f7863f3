// SPDX-License-Identifier: BSD-3-Clause
// c10d's calls in place: their first argument is written, and they give a Work. Nothing is sent.
#include <utility>

#include <torch/custom_class.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/comm/call_label.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/requires_grad.h"
#include "capture/trace/tracer.h"

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

void Tracer::note_communication() {
  const std::string* const label = comm::current_label();
  const bool is_own = label != nullptr && *label != label_outside_;
  graph_.set_communication(addresses_within(outside_), is_own ? std::optional(*label) : std::nullopt);
}

void Tracer::communicate(const c10::OperatorHandle& op, const Treatment& treatment, Stack& arguments) {
  modes_.sync();
  CallArguments given = to_arguments(op.schema(), arguments, context_);
  // ProcessGroup::barrier() keeps its tensor, as that of all ranks, until the next one.
  if (treatment.name == "c10d::barrier") values_.disown(arguments.front().toTensor());
  Node& node = graph_.call(treatment.target, std::move(given.args), std::move(given.kwargs));
  segments_.note_write();
  const std::size_t returns = op.schema().returns().size();
  const bool gives_tensors = returns == 2;
  Stack results;
  if (gives_tensors) results.push_back(arguments.front());
  if (returns > 0) results.emplace_back(works_.make(*this, node, gives_tensors));
  set_requires_grad(treatment, arguments, results);
  if (gives_tensors) {
    node.meta().set_value(graph::ValueMeta::List{meta_of_written(arguments.front()), graph::ValueMeta()});
    note_written(arguments.front(), node, {0});
  } else {
    node.meta().set_value({});
  }
  arguments = std::move(results);
}

void Tracer::note_written(const c10::IValue& value, Node& node, std::vector<std::int64_t> path) {
  if (value.isTensor()) return values_.add(value.toTensor(), node, std::move(path));
  path.push_back(0);
  for (const c10::IValue& item : value.toListRef()) {
    note_written(item, node, path);
    ++path.back();
  }
}

bool Tracer::wait(CapturedWork& work, std::chrono::milliseconds timeout) {
  if (rest_) {
    const FakeMode::Pause real;
    return works_.real(work).wait(timeout);
  }
  graph::List arguments;
  if (timeout != kNoTimeout) arguments.emplace_back(timeout.count());
  call_work(work, "wait", std::move(arguments));
  return true;
}

void Tracer::synchronize(CapturedWork& work) {
  if (rest_) return works_.real(work).synchronize();
  call_work(work, "synchronize", {});
}

void Tracer::call_work(CapturedWork& work, const char* method, graph::List arguments) {
  add_asserts();
  graph_.set_origin(call_stack());
  check_modes();
  note_communication();
  modes_.sync();
  arguments.insert(arguments.begin(), work.node(graph_));
  graph_.method(method, std::move(arguments));
}

// Works that the code holds become values of the segment that ends.
std::vector<Node*> Tracer::nodes_of_works() {
  std::vector<Node*> nodes;
  for (const auto& work : works_.alive()) nodes.push_back(&work->node(graph_));
  return nodes;
}

}  // namespace rehearse::capture
