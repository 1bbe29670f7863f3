// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/joint_graph.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/interpreter.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/joint/joint_inputs.h"
#include "capture/joint/joint_matmul.h"
#include "capture/joint/joint_outputs.h"
#include "capture/joint/joint_recorder.h"
#include "capture/joint/tangent_reach.h"

namespace rehearse::capture {
namespace {

bool is_unbacked(const shapes::ShapeEnv& shapes, const std::string& name) {
  const auto& symbols = shapes.unbacked();
  return std::any_of(symbols.begin(), symbols.end(), [&](const auto& symbol) { return symbol.name == name; });
}

// Facts about run-time sizes that come up while a captured graph is interpreted, for example in an operator's backward.
// The joint graph checks them. (The captured graph has its own nodes for the facts that it states itself.)
class StatedFacts {
 public:
  // `shapes`: null if there are no symbols.
  explicit StatedFacts(std::shared_ptr<shapes::ShapeEnv> shapes)
      : shapes_(std::move(shapes)), checked_(shapes_ != nullptr ? shapes_->asserts().size() : 0) {}

  // Adds to the end of the graph a check of each fact stated since the last call. Skips facts about sizes that no node
  // has: those are internal to operators.
  void add_checks(ExpressionNodes& expressions, graph::Graph& graph);

 private:
  const std::shared_ptr<shapes::ShapeEnv> shapes_;
  std::size_t checked_;  // number of asserts of `shapes` that are done
};

void StatedFacts::add_checks(ExpressionNodes& expressions, graph::Graph& graph) {
  if (shapes_ == nullptr) return;
  for (; checked_ < shapes_->asserts().size(); ++checked_) {
    const shapes::Guard& fact = shapes_->asserts()[checked_];
    const std::vector<std::string> symbols = fact.condition.symbols();
    const bool has_values = std::all_of(symbols.begin(), symbols.end(),
                                        [&](const std::string& symbol) { return expressions.knows_symbol(symbol); });
    if (!has_values) continue;
    graph.call_function(
        "torch.ops.aten._assert_scalar.default",
        {expressions.truth_of(fact.condition), "Runtime assertion failed for expression " + fact.condition.text()});
  }
}

// Strides as numbers; nothing if a symbol has no hint.
std::optional<std::vector<std::int64_t>> stride_hints(const TensorSpec& spec, const shapes::ShapeEnv* shapes) {
  std::vector<std::int64_t> hints;
  for (const c10::SymInt& stride : spec.strides) {
    const shapes::Expr expr = shapes::expr_of(stride);
    const auto hint = expr.is_number() ? std::optional(expr.number()) : shapes ? shapes->hint(expr) : std::nullopt;
    if (!hint) return std::nullopt;
    hints.push_back(*hint);
  }
  return hints;
}

// The memory layout that a result's gradient is assumed to have: the same order of dimensions as the result. If strides
// are symbols, their hints decide the order; without hints, the order is row-major.
TangentForm usual_form(const at::Tensor& result, const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  const auto hints = stride_hints(spec_of(result), shapes.get());
  if (hints) return {.dim_order = outermost_first(*hints)};
  TangentForm row_by_row{.dim_order = std::vector<std::int64_t>(static_cast<std::size_t>(result.dim()))};
  std::iota(row_by_row.dim_order.begin(), row_by_row.dim_order.end(), 0);
  return row_by_row;
}

// Describes a gradient of `result` in `form`.
TensorSpec tangent_spec(const at::Tensor& result, const TangentForm& form) {
  TensorSpec spec = spec_of(result);
  const auto is_expanded = [&](std::int64_t dim) {
    return !form.expanded.empty() && form.expanded[static_cast<std::size_t>(dim)];
  };
  std::vector<c10::SymInt> sizes;
  for (const std::int64_t dim : form.dim_order) {
    sizes.push_back(is_expanded(dim) ? c10::SymInt(1) : spec.sizes[static_cast<std::size_t>(dim)]);
  }
  const std::vector<c10::SymInt> strides = contiguous_strides(sizes);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::int64_t dim = form.dim_order[i];
    spec.strides[static_cast<std::size_t>(dim)] = is_expanded(dim) ? c10::SymInt(0) : strides[i];
  }
  spec.storage_offset = 0;
  spec.requires_grad = false;
  return spec;
}

// Runs a captured graph on fakes once, from its inputs to their gradients.
class Capture {
 public:
  Capture(const std::shared_ptr<graph::GraphModule>& part, const std::vector<c10::IValue>& example_inputs,
          const std::shared_ptr<shapes::ShapeEnv>& shapes, const std::vector<Tangent>* tangents)
      : part_(part),
        shapes_(shapes),
        wanted_(tangents),
        recorder_(*part, *joint_.module),
        facts_(shapes),
        mode_(shapes, &recorder_),
        inputs_(*part, example_inputs, recorder_) {}

  JointGraph run() {
    const FakeMode::Scope scope(mode_);
    JointOutputs outputs(recorder_, inputs_, run_forward());
    joint_.inputs = inputs_.values().size();
    joint_.values = outputs.values().size();
    joint_.outputs = outputs.outputs();
    joint_.changed_inputs = outputs.changed_inputs();
    joint_.views = outputs.views();
    graph::List results = outputs.values();
    for (graph::Argument& gradient : run_backward(outputs.tensors())) results.push_back(std::move(gradient));
    joint_.module->graph().output(std::move(results));
    return std::move(joint_);
  }

 private:
  std::vector<c10::IValue> run_forward() {
    const SymbolicMatmul symbolic_matmul;
    graph::Interpreter interpreter(part_);
    interpreter.set_observer([this](const graph::Node& node, const c10::IValue& value) {
      facts_.add_checks(recorder_.expressions(), joint_.module->graph());
      recorder_.end_of_node(node, value);
      begin_node(node.next());
    });
    begin_node(part_->graph().first());
    return interpreter.run(inputs_.values());
  }

  // A node that has unbacked symbols in the captured graph gets the same symbols in the joint graph.
  void begin_node(const graph::Node* node) {
    std::vector<c10::SymInt> symbols;
    if (node != nullptr && shapes_ != nullptr) {
      for (const std::string& name : node->meta().unbacked_bindings) {
        if (is_unbacked(*shapes_, name)) symbols.push_back(to_sym_int(shapes_, shapes::Expr::symbol(name)));
      }
    }
    mode_.set_unbacked(std::move(symbols));
    if (node != nullptr) recorder_.begin_of_node(*node);
  }

  // `values`: the forward's values; undefined tensors stand for values that are no tensors. Returns one gradient for
  // each input, or an empty list.
  graph::List run_backward(const std::vector<at::Tensor>& values) {
    if (!at::GradMode::is_enabled() || inputs_.differentiable().empty()) return {};
    joint_.tangents = wanted_ != nullptr ? *wanted_ : usual_tangents(values);
    if (joint_.tangents.empty()) return {};
    std::vector<at::Tensor> roots, tangents;
    for (const Tangent& tangent : joint_.tangents) {
      roots.push_back(values.at(tangent.value));
      tangents.push_back(make_fake(tangent_spec(roots.back(), tangent.form)));
      recorder_.add_placeholder("tangents_" + std::to_string(tangents.size()), tangents.back());
    }
    joint_.leading_tangents = leading_tangents(roots, inputs_);
    graph::Graph& graph = joint_.module->graph();
    // Marks the end of the forward. During the backward, the recorder may still insert queries of sizes in front of
    // this mark.
    graph::Node& boundary = graph.call_function("_operator.pos", {0});
    graph::List result = gradients_of(roots, tangents);
    joint_.backward_begin = boundary.next();
    graph.erase_node(boundary);
    return result;
  }

  // The new value of an input that was changed without autograd gets no tangent: the code that calls the joint graph
  // copies the value into the user's tensor, and records no history for this copy.
  bool has_tangent(std::size_t value, const at::Tensor& tensor) const {
    const auto is_it = [&](const ChangedInput& changed) { return changed.value == value && !changed.under_autograd; };
    return tensor.defined() && tensor.requires_grad() &&
           std::none_of(joint_.changed_inputs.begin(), joint_.changed_inputs.end(), is_it);
  }

  std::vector<Tangent> usual_tangents(const std::vector<at::Tensor>& values) const {
    std::vector<Tangent> tangents;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (has_tangent(i, values[i])) tangents.push_back({i, usual_form(values[i], shapes_)});
    }
    return tangents;
  }

  std::vector<at::Tensor> differentiate(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& tangents) {
    try {
      return torch::autograd::grad(roots, inputs_.differentiable(), tangents, /*retain_graph=*/false,
                                   /*create_graph=*/false, /*allow_unused=*/true);
    } catch (const c10::Error& error) {
      throw NoRecordedBackward("", "backward", error.what_without_backtrace());
    } catch (const graph::GraphError& error) {  // from the code of a captured hook
      throw NoRecordedBackward("", "backward", error.what());
    }
  }

  // Runs without autocast, as backwards do in eager mode.
  graph::List gradients_of(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& tangents) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const std::vector<at::Tensor> gradients = differentiate(roots, tangents);
    facts_.add_checks(recorder_.expressions(), joint_.module->graph());
    graph::List result(joint_.inputs);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      graph::Node* const node = recorder_.node_of(gradients[i]);
      if (node == nullptr) throw graph::GraphError("", "gradients", "has a tensor that no operator gave");
      result[inputs_.positions()[i]] = *node;
    }
    return result;
  }

  JointGraph joint_{.module = std::make_shared<graph::GraphModule>("JointGraph")};
  const std::shared_ptr<graph::GraphModule>& part_;
  const std::shared_ptr<shapes::ShapeEnv>& shapes_;
  const std::vector<Tangent>* const wanted_;
  JointRecorder recorder_;
  StatedFacts facts_;
  FakeMode mode_;
  JointInputs inputs_;
};

}  // namespace

JointGraph capture_joint(const std::shared_ptr<graph::GraphModule>& part,
                         const std::vector<c10::IValue>& example_inputs,
                         const std::shared_ptr<shapes::ShapeEnv>& shapes, const std::vector<Tangent>* tangents) {
  if (part == nullptr) throw graph::GraphError("", "module", "is null");
  try {
    return Capture(part, example_inputs, shapes, tangents).run();
  } catch (const CheckpointError& error) {  // from the body of a checkpoint: eager autograd refuses it too
    throw NoRecordedBackward("", "backward", error.what());
  }
}

}  // namespace rehearse::capture
