// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/aot_backward.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/aot/captured_hooks.h"
#include "compile/aot/tangent_form.h"

namespace rehearse::compiler {
namespace {

// The saved values that a backward uses, in order: names of nodes, with the expression if the value is a number.
std::vector<std::string> saved_names(const capture::JointPartition& partition) {
  std::vector<std::string> names;
  for (const graph::Node* input : partition.backward->graph().placeholders()) {
    if (names.size() == partition.saved_tensors + partition.saved_numbers) break;
    const auto* number = input->meta().value->scalar();
    names.push_back(number != nullptr ? input->name() + " = " + number->expression.text() : input->name());
  }
  return names;
}

// True for an operator of the forward that computes tensors. Excludes numbers, because the forward also computes
// numbers that only the backward needs.
bool is_of_forward(const graph::Node& node) {
  if (node.op() != graph::Op::CallFunction || node.target().starts_with("torch.ops.aten.sym_")) return false;
  return node.target().starts_with("torch.ops.") || node.target() == "_operator.getitem";
}

// The forms of the defined tangents. For a tangent whose memory has gaps, the list has the usual form: the backward
// copies such a tangent into that form.
std::vector<capture::Tangent> forms_of(const std::vector<at::Tensor>& tangents,
                                       const std::vector<capture::Tangent>& usual) {
  std::vector<capture::Tangent> forms;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i].defined()) continue;
    const auto form = has_form(tangents[i], usual[i].form) ? std::nullopt : form_of(tangents[i]);
    forms.push_back(form ? capture::Tangent{usual[i].value, *form} : usual[i]);
  }
  return forms;
}

std::size_t guards_of(const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  return shapes != nullptr ? shapes->guards().size() + shapes->asserts().size() : 0;
}

// True if the backward asserts facts about sizes. The ShapeEnv knows these facts after the first recording, so a second
// recording would lack the assertions.
bool checks_facts_in_backward(const capture::JointGraph& joint) {
  for (const graph::Node* node = joint.backward_begin; node != nullptr; node = node->next()) {
    if (node->target() == "torch.ops.aten._assert_scalar.default") return true;
  }
  return false;
}

}  // namespace

AotBackwards::AotBackwards(const capture::JointGraph& joint, const capture::JointPartition& partition,
                           std::optional<CapturedPart> part)
    : joint_(joint), part_(std::move(part)), saved_names_(saved_names(partition)) {
  std::vector<std::size_t> saved(saved_names_.size());
  std::iota(saved.begin(), saved.end(), std::size_t{0});
  first_ = std::make_unique<AotBackward>(AotBackward{graph::Interpreter(partition.backward), std::move(saved),
                                                     joint.tangents, partition.gradient_tangents});
}

const AotBackward& AotBackwards::for_tangents(const std::vector<at::Tensor>& tangents) {
  const std::vector<capture::Tangent> forms = forms_of(tangents, joint_.tangents);
  if (!part_ || forms.empty() || forms == joint_.tangents) return *first_;
  const std::lock_guard lock(mutex_);
  if (!others_.contains(forms)) others_.emplace(forms, record(forms));
  const auto& other = others_.at(forms);
  TORCH_CHECK(
      other != nullptr || forms.size() == joint_.tangents.size() || first_hook(*part_->module) == nullptr,
      "aot_eager: a compiled function has captured hooks, and some of its results got no gradient; aot_eager cannot "
      "record such a backward. Compile the function with the back end 'eager'");
  return other != nullptr ? *other : *first_;
}

bool AotBackwards::has_path_to(std::size_t input) const {
  const auto leads_to = [input](const auto& tangents) { return input < tangents.size() && !tangents[input].empty(); };
  return leads_to(joint_.leading_tangents) || leads_to(first_->gradient_tangents);
}

std::size_t AotBackwards::recorded() const noexcept {
  return 1 + static_cast<std::size_t>(std::count_if(others_.begin(), others_.end(),
                                                    [](const auto& other) { return other.second != nullptr; }));
}

std::unique_ptr<AotBackward> AotBackwards::record(const std::vector<capture::Tangent>& tangents) const {
  if (checks_facts_in_backward(joint_)) return nullptr;
  const at::AutoGradMode with_gradients(true);
  const std::size_t guards = guards_of(part_->shapes);
  capture::JointGraph again;
  try {
    again = capture::capture_joint(part_->module, part_->example_inputs, part_->shapes, &tangents);
  } catch (const capture::FakeError&) {
    return nullptr;
  } catch (const capture::SharedInputChanges&) {
    return nullptr;
  } catch (const capture::NoRecordedBackward&) {
    return nullptr;
  } catch (const shapes::ShapeError&) {
    return nullptr;
  }
  if (guards_of(part_->shapes) != guards || !has_same_forward(again)) return nullptr;
  const capture::JointPartition partition = capture::partition_joint(again);
  std::vector<std::size_t> saved;
  for (const std::string& name : saved_names(partition)) {
    const auto found = std::find(saved_names_.begin(), saved_names_.end(), name);
    if (found == saved_names_.end()) return nullptr;
    saved.push_back(static_cast<std::size_t>(found - saved_names_.begin()));
  }
  return std::make_unique<AotBackward>(AotBackward{graph::Interpreter(partition.backward), std::move(saved),
                                                   again.tangents, partition.gradient_tangents});
}

// A recorded backward finds its saved values by the names of the forward's nodes, so both recordings must have the same
// operators in the forward.
bool AotBackwards::has_same_forward(const capture::JointGraph& again) const {
  const auto operators_of = [](const capture::JointGraph& joint) {
    std::map<std::string, std::string> targets;
    for (const graph::Node& node : joint.module->graph()) {
      if (&node == joint.backward_begin) break;
      if (is_of_forward(node)) targets.emplace(node.name(), node.target());
    }
    return targets;
  };
  return operators_of(joint_) == operators_of(again);
}

}  // namespace rehearse::compiler
