// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/joint_recorder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse/graph/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/graph/operators.h>
#include <rehearse_internal/operators/storage_of.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/graph/call_arguments.h"

namespace rehearse::capture {
namespace {

bool holds_fake_tensor(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && is_fake(value.toTensor());
}

bool is_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !schema.is_mutable() && !returns.empty() && returns.front().alias_info() != nullptr;
}

bool is_arithmetic(const graph::Node& node) {
  if (node.op() != graph::Op::CallFunction) return false;
  const std::string_view target = node.target();
  return target.starts_with("_operator.") || target.starts_with("torch.sym_") ||
         target.starts_with("torch.ops.aten.sym_");
}

constexpr std::string_view kAssertScalar = "torch.ops.aten._assert_scalar.default";

graph::ValueMeta meta_of_value(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) return meta_of(value.toTensor());
  if (value.isSymInt() || value.isInt()) return meta_of(shapes::expr_of(value.toSymInt()));
  if (!value.isList()) return {};
  graph::ValueMeta::List items;
  for (const c10::IValue& item : value.toListRef()) items.push_back(meta_of_value(item));
  return items;
}

}  // namespace

bool ZeroTensors::has(const c10::IValue& value) const {
  return holds_fake_tensor(value) && zeros_.contains(fake_id(value.toTensor()));
}

// Notes the results of operators for which LibTorch has kernels for ZeroTensors. Other operators turn ZeroTensors into
// zeros in memory.
void ZeroTensors::note(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results) {
  if (results.size() != 1 || !holds_fake_tensor(results[0])) return;
  const std::uint64_t result = fake_id(results[0].toTensor());
  const std::string& name = op.schema().name();
  if (name == "aten::_efficientzerotensor") {
    zeros_.insert(result);
    return;
  }
  if (zeros_.empty()) return;
  bool is_zero = false;
  if (name == "aten::mul") {
    is_zero = has(arguments[0]) || has(arguments[1]);
  } else if (name == "aten::add" || name == "aten::add_" || name == "aten::sub") {
    is_zero = has(arguments[0]) && has(arguments[1]);
  } else if (name == "aten::div" || is_view(op.schema())) {
    is_zero = !arguments.empty() && has(arguments[0]);
  }
  if (is_zero) {
    zeros_.insert(result);
  } else {
    zeros_.erase(result);
  }
}

c10::OperatorHandle ZeroTensors::callable(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) const {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.name() != "aten::add_" || schema.overload_name() != "Tensor" || !has(arguments[0])) return op;
  return c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
}

graph::Argument NumbersOfGraph::of(const graph::Argument& argument) {
  return map_nodes(argument, [this](const graph::Node& node) -> graph::Argument { return of(node); });
}

graph::Node& NumbersOfGraph::of(const graph::Node& node) {
  if (const auto known = nodes_.find(&node); known != nodes_.end()) return *known->second;
  if (!is_arithmetic(node)) throw graph::GraphError(node.name(), "", "has no value in the joint graph");
  graph::List arguments;
  for (const graph::Argument& argument : node.args()) arguments.push_back(of(argument));
  graph::Node& copy = joint_.graph().call_function(node.target(), std::move(arguments));
  copy.meta() = node.meta();
  bind(node, copy);
  return copy;
}

bool is_tensor(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); }

JointRecorder::JointRecorder(const graph::GraphModule& part, graph::GraphModule& joint)
    : part_(part),
      joint_(joint),
      expressions_([this](const std::string& target, graph::List arguments) -> graph::Node& {
        return joint_.graph().call_function(target, std::move(arguments));
      }),
      numbers_of_graph_(joint) {}

graph::Node& JointRecorder::add_input(const graph::Node& placeholder, const c10::IValue& value) {
  graph::Node& node = add_placeholder(placeholder.name(), value);
  node.meta().origin = placeholder.meta().origin;
  node.meta().ddp_ignored = placeholder.meta().ddp_ignored;
  numbers_of_graph_.bind(placeholder, node);
  return node;
}

graph::Node& JointRecorder::add_placeholder(const std::string& name, const c10::IValue& value) {
  graph::Graph& graph = joint_.graph();
  const graph::Graph::InsertionPoint after_the_others(graph, first_step());
  graph::Node& node = graph.placeholder(name);
  if (is_tensor(value)) {
    node.meta().set_value(meta_of(value.toTensor()));
    bind_tensor(node, value.toTensor());
  } else if (value.isSymInt() || value.isInt()) {
    const shapes::Expr expr = shapes::expr_of(value.toSymInt());
    node.meta().set_value(meta_of(expr));
    if (!expr.is_number()) expressions_.bind(expr, node);
  }
  return node;
}

graph::Node* JointRecorder::first_step() const {
  graph::Node* node = joint_.graph().first();
  while (node != nullptr && node->op() == graph::Op::Placeholder) node = node->next();
  return node;
}

graph::Node* JointRecorder::node_of(const at::Tensor& fake) const {
  const auto found = nodes_.find(fake_id(fake));
  return found != nodes_.end() ? found->second : nullptr;
}

bool JointRecorder::was_written(const at::Tensor& fake) const { return written_.contains(operators::storage_of(fake)); }

at::Tensor JointRecorder::fake_of(const at::Tensor& real) {
  if (real.unsafeGetTensorImpl()->is_wrapped_number()) {
    at::Tensor fake = make_fake(spec_of(real));
    const FakeMode::Pause pause;
    const at::Scalar number = real.item();
    numbers_.emplace(fake_id(fake), number.isBoolean()         ? graph::Argument(number.toBool())
                                    : number.isIntegral(false) ? graph::Argument(number.toLong())
                                    : number.isComplex()
                                        ? graph::Argument(std::complex<double>(number.toComplexDouble().real(),
                                                                               number.toComplexDouble().imag()))
                                        : graph::Argument(number.toDouble()));
    return fake;
  }
  const auto found = stands_.find(real.unsafeGetTensorImpl());
  if (found != stands_.end()) return found->second.fake;
  TensorSpec spec = spec_of(real);
  spec.requires_grad = false;
  const at::Tensor fake = make_fake(spec);
  bind_tensor(attribute_of(real), fake);
  stands_.emplace(real.unsafeGetTensorImpl(), Stand{real, fake});
  return fake;
}

graph::Node& JointRecorder::attribute_of(const at::Tensor& real) {
  const auto& attributes = part_.attributes();
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& attribute) { return attribute.second.tensor.is_same(real); });
  const std::string name =
      found != attributes.end() ? found->first : "_tensor_constant" + std::to_string(joint_.attributes().size());
  if (real.requires_grad() && at::GradMode::is_enabled()) {
    throw graph::GraphError("", name, "is an attribute that requires a gradient: it must be an input of the graph");
  }
  const graph::TensorMeta meta = meta_of(real);
  joint_.set_attribute(name, {.meta = meta, .tensor = real});
  graph::Node& node = joint_.graph().get_attr(name);
  node.meta().set_value(meta);
  return node;
}

graph::Argument JointRecorder::argument_of(const at::Tensor& fake) const {
  if (graph::Node* node = node_of(fake)) return *node;
  const auto number = numbers_.find(fake_id(fake));
  if (number != numbers_.end()) return number->second;
  throw graph::GraphError("", "arguments", "has a tensor that no node of the graph gives");
}

void JointRecorder::note_writes(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const auto& formals = op.schema().arguments();
  const auto note = [&](const c10::IValue& value) {
    if (is_tensor(value)) written_.insert(operators::storage_of(value.toTensor()));
  };
  for (std::size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].alias_info() == nullptr || !formals[i].alias_info()->isWrite()) continue;
    note(arguments[i]);
    if (!arguments[i].isList()) continue;
    for (const c10::IValue& item : arguments[i].toListRef()) {
      note(item);
      // The kernels of lists call add_() and the like, which count the change; autograd counts it for a single tensor.
      if (is_tensor(item)) item.toTensor().unsafeGetTensorImpl()->bump_version();
    }
  }
}

void JointRecorder::on_operator(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                                c10::ArrayRef<c10::IValue> results) {
  graph::Node& node = add_call(zeros_.callable(op, arguments), arguments);
  zeros_.note(op, arguments, results);
  if (!at::GradMode::is_enabled()) without_grad_mode_.insert(&node);
  last_call_ = &node;
  note_writes(op, arguments);
  if (results.size() == 1) bind_result(node, results[0]);
  if (results.size() > 1) bind_items(node, results.vec());
}

graph::Node& JointRecorder::add_call(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const std::string target = graph::target_of(op);
  CallArguments call;
  if (part_node_ != nullptr && part_node_->target() == target && target == kAssertScalar) {
    for (const graph::Argument& argument : part_node_->args()) call.args.push_back(numbers_of_graph_.of(argument));
  } else {
    const exec::CallSite no_site;  // nodes have the origins of the interpreted graph
    call = to_arguments(op.schema(), arguments,
                        {[this](const at::Tensor& fake) { return argument_of(fake); }, expressions_, no_site});
  }
  graph::Node& node = joint_.graph().call_function(target, std::move(call.args), std::move(call.kwargs));
  node.meta().origin = origin_of_backward();
  return node;
}

void JointRecorder::bind_result(graph::Node& node, const c10::IValue& result) {
  if (result.isList()) return bind_items(node, result.toListRef().vec());
  node.meta().set_value(meta_of_value(result));
  if (is_tensor(result)) return bind_tensor(node, result.toTensor());
  if (!result.isSymInt()) return;
  const shapes::Expr expr = shapes::expr_of(result.toSymInt());
  if (expr.is_symbol() && shapes::is_unbacked_name(expr.symbol_name()) && !expressions_.knows(expr)) {
    node.meta().unbacked_bindings = {expr.symbol_name()};
  }
  if (!expr.is_number()) expressions_.bind(expr, node);
}

void JointRecorder::bind_tensor(graph::Node& node, const at::Tensor& fake) {
  nodes_.insert_or_assign(fake_id(fake), &node);
  bind_layout(node, fake);
}

// A later node may need a size, a stride or the offset of this tensor. If no node has that number yet, the later node
// gets it from a query. The query is inserted right after the tensor's node, so that the forward saves a number for the
// backward and not the tensor.
void JointRecorder::bind_layout(graph::Node& node, const at::Tensor& fake) {
  const auto bind = [&](const c10::SymInt& value, std::string_view query, const graph::List& arguments) {
    const shapes::Expr expr = shapes::expr_of(value);
    if (expr.is_number() || expressions_.knows(expr)) return;
    if (expr.is_symbol() && shapes::is_unbacked_name(expr.symbol_name())) {
      node.meta().unbacked_bindings.push_back(expr.symbol_name());
    }
    expressions_.bind_lazily(expr, [this, &node, expr, query, arguments]() -> graph::Node& {
      graph::Node* const before = node.op() == graph::Op::Placeholder ? first_step() : node.next();
      const graph::Graph::InsertionPoint point(joint_.graph(), before);
      graph::Node& asked = joint_.graph().call_function("torch.ops.aten." + std::string(query), arguments);
      asked.meta().set_value(meta_of(expr));
      asked.meta().origin = node.meta().origin;
      return asked;
    });
  };
  for (std::int64_t dim = 0; dim < fake.dim(); ++dim) bind(fake.sym_size(dim), "sym_size.int", {node, dim});
  for (std::int64_t dim = 0; dim < fake.dim(); ++dim) bind(fake.sym_stride(dim), "sym_stride.int", {node, dim});
  bind(fake.sym_storage_offset(), "sym_storage_offset.default", {node});
}

void JointRecorder::bind_items(graph::Node& node, const std::vector<c10::IValue>& items) {
  graph::ValueMeta::List metas;
  for (const c10::IValue& item : items) metas.push_back(meta_of_value(item));
  node.meta().set_value(std::move(metas));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_tensor(items[i]) && !items[i].isSymInt() && !items[i].isList()) continue;
    graph::Node& item = joint_.graph().call_function("_operator.getitem", {node, i});
    item.meta().origin = node.meta().origin;
    bind_result(item, items[i]);
  }
}

void JointRecorder::begin_of_node(const graph::Node& node) {
  part_node_ = &node;
  last_call_ = nullptr;
}

void JointRecorder::end_of_node(const graph::Node& node, const c10::IValue& value) {
  graph::Node* const bound = is_tensor(value) && is_fake(value.toTensor()) ? node_of(value.toTensor()) : last_call_;
  if (bound != nullptr) numbers_of_graph_.bind(node, *bound);
  const auto& origin = node.meta().origin;
  const std::uint64_t sequence = at::sequence_number::peek();
  if (origins_.empty() || origins_.back().sequence < sequence) origins_.push_back({sequence, origin});
  for (graph::Node* made = joint_.graph().last(); made != nullptr; made = made->prev()) {
    if (made->meta().origin != nullptr || made->op() == graph::Op::Placeholder) break;
    made->meta().origin = origin;
  }
  part_node_ = nullptr;
}

graph::Argument JointRecorder::unbacked_result(std::size_t output) {
  const graph::Argument& results = part_.graph().output_node()->args()[0];
  const auto* items = results.get_if<graph::List>();
  const graph::Argument& result = items != nullptr ? items->at(output) : results;
  const graph::Node* node = result.node();
  const auto* number = node != nullptr && node->meta().value != nullptr ? node->meta().value->scalar() : nullptr;
  if (number == nullptr) return {};
  const auto symbols = number->expression.symbols();
  return std::any_of(symbols.begin(), symbols.end(), shapes::is_unbacked_name) ? numbers_of_graph_.of(result)
                                                                               : graph::Argument();
}

// A step of the backward has the origin that the matching step of the forward noted.
std::shared_ptr<const graph::Origin> JointRecorder::origin_of_backward() const {
  const auto step = torch::autograd::get_current_node();
  if (step == nullptr) return nullptr;
  const auto found =
      std::upper_bound(origins_.begin(), origins_.end(), step->sequence_nr(),
                       [](std::uint64_t sequence, const OriginUpTo& origin) { return sequence < origin.sequence; });
  if (found == origins_.end() || !found->origin || !found->origin->label) {
    return found != origins_.end() ? found->origin : nullptr;
  }
  // The label was set around the forward, not around the backward.
  graph::Origin origin = *found->origin;
  origin.label.reset();
  return std::make_shared<const graph::Origin>(std::move(origin));
}

}  // namespace rehearse::capture
