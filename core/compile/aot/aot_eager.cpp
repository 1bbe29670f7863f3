// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/compile/aot_eager.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/run_on_fakes.h>

#include "compile/aot/aot_program.h"
#include "compile/aot/captured_hooks.h"
#include "compile/aot/eager_only.h"
#include "compile/aot/find_node.h"
#include "compile/aot/stored_joint.h"
#include "graph/run/call/communication.h"

namespace rehearse::compiler {

namespace {

// The first in-place c10d call, which has no gradient; null if there is none.
const graph::Node* call_in_place(const graph::GraphModule& module) {
  return find_node(
      module, [](const graph::Node& node, const graph::GraphModule&) { return graph::communicates_in_place(node); });
}

// True for a result of a functional collective.
bool is_launched(const graph::Node& tensor) {
  const graph::Node* launch = &tensor;
  while (launch != nullptr && launch->target() == "_operator.getitem") launch = launch->args().at(0).node();
  return launch != nullptr && launch->target().starts_with("torch.ops._c10d_functional");
}

// The first wait for something that was launched before the graph; null if there is none. The graph copies arguments
// that it changes, and would copy them before it waits.
const graph::Node* wait_for_other(const graph::GraphModule& module) {
  for (const graph::Node& node : module.graph()) {
    if (!node.target().starts_with("torch.ops._c10d_functional.wait_tensor")) continue;  // one, or a list
    const auto& tensors = node.input_nodes();
    if (!std::all_of(tensors.begin(), tensors.end(), [](const auto* each) { return is_launched(*each); })) return &node;
  }
  return nullptr;
}

// Results that are views are made again outside of the graph, from arguments and values, and no hook runs there.
EagerOnly use_by_hooks(const graph::GraphModule& module, const capture::JointGraph& joint) {
  if (joint.views != nullptr) return {first_hook(module), "it registers a hook, and a result is a view"};
  // A hook that the caller registers on the result must run after this hook. In a recorded backward, this hook would
  // run after the caller's.
  if (const auto* const hook = hook_of_result(module)) return {hook, "it registers a hook on a result"};
  if (joint.changed_inputs.empty()) return {nullptr, ""};
  return {writing_hook(module), "it changes an argument, and registers a hook that writes to a tensor"};
}

bool has_inference_tensor(const std::vector<c10::IValue>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const c10::IValue& input) {
    return input.isTensor() && input.toTensor().defined() && input.toTensor().is_inference();
  });
}

std::string with_line(const std::string& what, const graph::Node& node) {
  const std::string line = node.meta().source_line();
  return what + (line.empty() ? "" : ", at " + line);
}

}  // namespace

CompiledGraph AotEagerBackend::compile(const BackendInput& input) {
  if (const graph::Node* call = call_in_place(*input.module)) {
    const std::string line = call->meta().source_line();
    return compile_eagerly(input, "it communicates in place, by " + call->target() + (line.empty() ? "" : ", " + line));
  }
  if (const auto use = find_eager_only(*input.module); use.node != nullptr) {
    return compile_eagerly(input, with_line(use.what, *use.node));
  }
  capture::JointGraph joint;
  try {
    joint = capture::capture_joint(input.module, input.example_inputs, input.shapes);
  } catch (const capture::FakeError& error) {
    return compile_eagerly(input, error.what());
  } catch (const capture::SharedInputChanges& error) {
    return compile_eagerly(input, error.what());
  } catch (const capture::NoRecordedBackward& error) {  // eager autograd also refuses it, or handles it differently
    return compile_eagerly(input, error.what());
  } catch (const c10::Error& error) {  // an operator's own error: eager autograd throws it when the graph runs
    return compile_eagerly(input, error.what_without_backtrace());
  } catch (const shapes::ShapeError& error) {  // as in the backward of prod(), sizes depend on data
    return compile_eagerly(input, error.what());
  }
  if (const auto use = use_by_hooks(*input.module, joint); use.node != nullptr) {
    return compile_eagerly(input, with_line(use.what, *use.node));
  }
  const graph::Node* const wait = joint.changed_inputs.empty() ? nullptr : wait_for_other(*input.module);
  if (wait != nullptr) {
    constexpr const char* kWhy = "it changes an argument, and waits for a collective that was launched in front of it";
    return compile_eagerly(input, with_line(kWhy, *wait));
  }
  return program_of(input, std::move(joint));
}

CompiledGraph AotEagerBackend::restore(const BackendInput& input, const std::string& stored) {
  return program_of(input, joint_from(stored, *input.module));
}

CompiledGraph AotEagerBackend::program_of(const BackendInput& input, capture::JointGraph joint) {
  capture::JointPartition partition = capture::partition_joint(joint);
  const auto program = std::make_shared<const AotProgram>(
      joint, partition, input.name,
      CapturedPart{input.module, capture::copies_of_fakes(input.example_inputs), input.shapes});
  const auto made = std::make_shared<const Compiled>(
      Compiled{input.name, std::move(joint), std::move(partition), /*eager_because=*/"", program});
  graphs_.push_back(made);
  // Eager autograd refuses to save an inference tensor. Operator by operator, the error comes from the same operator,
  // so that no random numbers are drawn behind it.
  const auto run = [program, module = input.module](std::vector<c10::IValue> inputs) {
    const bool must_refuse = at::GradMode::is_enabled() && has_inference_tensor(inputs);
    return must_refuse ? graph::Interpreter(module).run(std::move(inputs)) : program->call(inputs);
  };
  CompiledGraph compiled(run, outputs_of(input));
  compiled.store = [made, part = input.module] { return stored_joint(made->joint, *part); };
  return compiled;
}

CompiledGraph AotEagerBackend::compile_eagerly(const BackendInput& input, std::string why) {
  TORCH_WARN("aot_eager: '", input.name, "' runs under eager autograd: ", why);
  if (input.note_eager) input.note_eager(why);
  graphs_.push_back(std::make_shared<const Compiled>(Compiled{input.name, {}, {}, why, nullptr}));
  const auto graph = std::make_shared<const graph::Interpreter>(input.module);
  CompiledGraph compiled([graph](std::vector<c10::IValue> inputs) { return graph->run(std::move(inputs)); },
                         outputs_of(input));
  compiled.store = [why = std::move(why)]() -> std::string {
    throw std::runtime_error("it runs under eager autograd: " + why);
  };
  return compiled;
}

}  // namespace rehearse::compiler
