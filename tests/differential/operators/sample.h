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

// How the arguments of an operator are made: from its schema, and then each field is a row of a table in sample.cpp, or
// by a recipe that names the operator.
struct Choice {
  static constexpr int kSparse = 1, kQuantized = 2, kCompressed = 3, kKinds = 4;  // of tensors
  static constexpr int kNumbers = 4;

  int shapes = 0, dtypes = 0, numbers = 0;
  bool optionals = false;  // gives tensors that may be left out
  bool strided = false;    // tensors are not contiguous
  int kind = 0;            // of tensors: strided, sparse, quantized, compressed sparse rows
  bool empty = false;      // the size that varies is 0
  int index = 0;           // tells it apart from all others
  int recipe = -1;         // the place of the recipe, if there is one
  int draw = 0;            // of the values of a recipe

  bool is_plain() const { return !strided && !empty; }
  std::string text() const;
};

// The choices for an operator, without the strided and the empty ones: its recipes, or all combinations of the tables.
std::vector<Choice> choices_of(const c10::FunctionSchema& schema);

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
