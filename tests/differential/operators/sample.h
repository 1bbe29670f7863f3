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

// How to make an operator's arguments: from a recipe for this operator, or from its schema. If they are made from the
// schema, `shapes` and `dtypes` are rows of the tables in sample_rows.cpp.
struct Choice {
  static constexpr int kSparse = 1, kQuantized = 2, kCompressed = 3, kKinds = 4;  // kinds of tensors
  static constexpr int kNumbers = 4;
  enum class Leaves { All, Even, Odd };  // by position among the dense floating-point and complex tensors

  int shapes = 0, dtypes = 0, numbers = 0;
  bool optionals = false;       // passes optional arguments, too
  bool strided = false;         // tensors are not contiguous
  int kind = 0;                 // of tensors: strided, sparse, quantized, compressed sparse rows
  bool empty = false;           // the varying size is 0
  bool single = false;          // float32 instead of float64
  Leaves leaves = Leaves::All;  // tensors that require grad, if any do
  bool grad = true;             // grad mode
  int index = 0;                // unique among the operator's choices
  int recipe = -1;              // the index of the recipe, if there is one
  int draw = 0;                 // number of the draw of a recipe's values

  bool is_plain() const { return !strided && !empty; }
  std::string text() const;
};

// Returns the choices for an operator: its recipes with three draws each or, if it has no recipes, combinations of the
// tables. No choice is strided or empty.
std::vector<Choice> choices_of(const c10::FunctionSchema& schema);

// The choice in other forms, as far as they differ: without grad mode, with gradients for some tensors only, in
// float32. With grad mode, an `out` argument allows no gradients.
std::vector<Choice> other_forms(const c10::FunctionSchema& schema, const Choice& choice);

// The arguments at one size. `inputs` has the tensors of the stack, in order.
struct Sample {
  torch::jit::Stack stack;
  Inputs inputs;
};

// Returns nothing if the schema needs something that the tables do not have, or if the row of shapes does not fit the
// operator (see fits()). With `needs_grad`, the choice's leaves require gradients. If the operator changes such a
// tensor in place (other than `out`), the tensor is computed from a leaf.
std::optional<Sample> make_sample(const c10::FunctionSchema& schema, const Choice& choice, std::int64_t size,
                                  bool needs_grad);

// The stack with its tensors replaced.
torch::jit::Stack with_tensors(const torch::jit::Stack& stack, const Tensors& tensors);

// The tensors in a stack, and in its lists of tensors, but not in its lists of optional tensors.
Tensors tensors_in(const torch::jit::Stack& stack);

}  // namespace rehearse_test::differential
