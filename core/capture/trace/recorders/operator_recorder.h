// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/SymInt.h>

#include "capture/trace/operators/treatment.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// Records operators on tensors as nodes. An operator's arguments are fakes in the order of its schema. record() and
// evaluate() replace these arguments by the results for the code (see OperatorResults::note()).
class OperatorRecorder {
 public:
  explicit OperatorRecorder(Recording& recording) : recording_(recording) {}

  void record(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  // Runs an operator that needs only sizes or types. Adds no node.
  void evaluate(const c10::OperatorHandle& op, torch::jit::Stack& arguments);
  // Answers at::equal() if that is possible without data: tensors of different sizes differ, and a tensor equals itself
  // unless it has a NaN. If the code must be one graph, the graph checks for a NaN when it runs.
  std::optional<bool> answer_equal(const torch::jit::Stack& arguments, bool is_whole);
  // Runs the factory of a constant for real. See Recording::note_constant().
  void make_constant(const c10::OperatorHandle& op, torch::jit::Stack& arguments);
  // Reads an integer from data as a symbol that the graph defines.
  c10::SymInt read_symbolically(const at::Tensor& tensor);
  // Reads the version of a tensor as a symbol that the graph defines.
  c10::SymInt read_version(const Treatment& treatment, const at::Tensor& tensor);

 private:
  void evaluate_with_geometry(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  void infer_opaque(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  c10::SymInt number_of(const std::string& target, graph::Node& value);
  bool record_parts(const c10::OperatorHandle& op, torch::jit::Stack& arguments);

  Recording& recording_;
};

}  // namespace rehearse::capture
