// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include "differential/run/inputs.h"

namespace rehearse_test::differential {

// How the arguments of an operator are made from its schema. Each field is a row of a table in sample.cpp.
struct Choice {
  int shapes = 0, dtypes = 0, numbers = 0;
  bool optionals = false;  // gives tensors that may be left out
  bool strided = false;    // tensors are not contiguous
  int kind = 0;            // of tensors: strided, sparse, quantized, compressed sparse rows
  bool empty = false;      // the size that varies is 0
  int index = 0;           // tells it apart from all others

  bool is_plain() const { return !strided && !empty; }
  std::string text() const;
};

// All combinations, the plain ones first.
const std::vector<Choice>& all_choices();

// The arguments at a size. Tensors of `inputs` are those of the stack, in order.
struct Sample {
  torch::jit::Stack stack;
  Inputs inputs;
};

// Nothing where the schema wants something that the tables have not. `needs_grad`: floating-point tensors require
// gradients; those that the operator writes are computed from leaves.
std::optional<Sample> make_sample(const c10::FunctionSchema& schema, const Choice& choice, std::int64_t size,
                                  bool needs_grad);

// The stack with other tensors in the places of its own.
torch::jit::Stack with_tensors(const torch::jit::Stack& stack, const Tensors& tensors);

// The tensors in a stack, those in lists as well.
Tensors tensors_in(const torch::jit::Stack& stack);

}  // namespace rehearse_test::differential
