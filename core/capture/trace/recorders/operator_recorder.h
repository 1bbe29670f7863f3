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

// Makes nodes of operators on tensors, and answers them with fakes. The arguments of an operator are fakes in the order
// of its schema; its results replace them.
class OperatorRecorder {
 public:
  explicit OperatorRecorder(Recording& recording) : recording_(recording) {}

  void record(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  // Of an operator that asks about sizes or types alone: no node.
  void evaluate(const c10::OperatorHandle& op, torch::jit::Stack& arguments);
  // at::equal() where the answer is known without data.
  std::optional<bool> answer_equal(const torch::jit::Stack& arguments);
  // An integer of data as a symbol that the graph brings into being.
  c10::SymInt read_symbolically(const at::Tensor& tensor);
  // The version of a tensor, in the same way.
  c10::SymInt read_version(const Treatment& treatment, const at::Tensor& tensor);

 private:
  void infer_opaque(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  c10::SymInt number_of(const std::string& target, graph::Node& value);
  bool record_parts(const c10::OperatorHandle& op, torch::jit::Stack& arguments);

  Recording& recording_;
};

}  // namespace rehearse::capture
