// SPDX-License-Identifier: BSD-3-Clause
#include "compile/compared_guards.h"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <rehearse_internal/hash/fnv1a.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "checks/values/module_tensors.h"
#include "compile/compiler_collectives/compiler_collectives.h"

namespace rehearse::compiler {
namespace {

std::string text_of_argument(const Leaf& leaf, const LeafShape& shape) {
  if (leaf.kind == LeafKind::Group || shape.symbolic_int) return std::string(text_of(leaf.kind));
  if (leaf.kind != LeafKind::Tensor) return exact_text_of(leaf);
  std::string text = fmt::format("{} {}", c10::toString(leaf.tensor->scalar_type()), leaf.tensor->requires_grad());
  for (std::size_t d = 0; d < shape.varies.size(); ++d) {
    text += shape.varies[d] ? " n" : fmt::format(" {}", shape.sizes[d]);
  }
  return text;
}

// The parameters of the module, or the tensors that the function uses.
std::string text_of_tensors(const CallView& call, const Capture& capture) {
  std::string text;
  const auto add = [&text](const at::Tensor& tensor) {
    text += fmt::format("{} {}\n", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), " "));
  };
  if (call.module) {
    for (const auto& each : checks::parameters_of(*call.module)) add(each.tensor);
  }
  for (const InputBinding& input : capture.inputs) {
    if (!call.module && input.kind == InputBinding::Kind::Captured) add(input.tensor);
  }
  return text;
}

}  // namespace

std::uint64_t compared_guards(const CallView& call, const Capture& capture, const CompileOptions& options) {
  const GlobalState& state = call.state;
  std::string text = options.group ? fmt::format("{}", fmt::join(world_ranks_of(*options.group.get()), " "))
                                   : state.types->name() + text_of_tensors(call, capture);
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    text += fmt::format("\n{} {}", call.sources[i], text_of_argument(call.leaves[i], capture.shape[i]));
  }
  for (const shapes::Guard& guard : capture.shapes->guards()) text += "\n" + guard.condition.text();
  const bool trains = call.module ? call.module->is_training() : state.module_modes == 0;
  text += fmt::format("\n{} {} {} {} {}\n{}", trains, state.grad_mode, state.inference_mode,
                      fmt::join(state.autocast, " "), c10::toString(state.default_dtype), capture.guards.watched());
  return fnv1a(text);
}

}  // namespace rehearse::compiler
