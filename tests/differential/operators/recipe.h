// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

namespace rehearse_test::differential {

// The arguments of an operator as words, one per argument. Arguments after the last word take their defaults.
//
//   d[n,4]      a tensor: d double, f float, l long, i int, b bool, c complex, u byte, s int8, h half, g bfloat16
//   da[n,4]     its values: a counts up, 0 and 1 are constant, e is the identity, p is positive definite, s is
//               sorted; without any of these they are drawn from [0, 1), integers from {0, 1}
//   {d[n];-}    a list of tensors; - is an element without a tensor
//   3 0.5 n     a number. n is the varying size, m is n + 2, p is n + 1, w is 2n. Sizes of tensors and lists of
//               integers may contain these letters, too
//   (1,n)       a list of integers
//   <0.5,1>     a list of floating-point numbers
//   T F ?TF     a bool, a list of bools
//   'mean'      a text
//   @6          a dtype
//   -           nothing
//   =           the default
using Recipe = std::string;

// The recipes for an operator, found by its name with its overload, or else by the name alone.
const std::vector<Recipe>& recipes_of(const c10::FunctionSchema& schema);

struct RecipeTerms {
  std::int64_t size = 3;
  bool strided = false;
  at::Generator generator;
};

std::vector<std::string> words_of(const Recipe& recipe);
// Returns whether the word describes one tensor.
bool is_tensor_word(const std::string& word);
at::Tensor tensor_of_word(const std::string& word, const RecipeTerms& terms);
// Splits the text at each separator.
std::vector<std::string> items_of(const std::string& list, char separator);
// The value of a word without tensors, for an argument of type `type`.
c10::IValue value_of_word(const std::string& word, const c10::Type& type, std::int64_t size);

}  // namespace rehearse_test::differential
