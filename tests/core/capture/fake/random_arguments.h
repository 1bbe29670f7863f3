// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

// Random arguments for an operator, small enough that LibTorch accepts many of them.
namespace rehearse::capture::test {

struct RandomTensor {
  std::vector<std::int64_t> sizes;
  c10::ScalarType dtype = c10::kFloat;
  bool transposed = false;  // dimensions 0 and 1 of a contiguous tensor are swapped
};

struct RandomArgument {
  std::vector<RandomTensor> tensors;
  bool is_list = false;
  c10::IValue value;  // if there are no tensors
};

// Gives a value to each argument of a schema, from a seed. An argument that the operator writes is an empty tensor.
class ArgumentMaker {
 public:
  explicit ArgumentMaker(std::uint64_t seed) : random_(seed) {}

  // Throws std::invalid_argument if an argument has a type that this class cannot make.
  std::vector<RandomArgument> arguments(const c10::FunctionSchema& schema);

 private:
  std::size_t draw(std::size_t count) { return random_() % count; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + draw(values.size()));
  }
  std::int64_t integer() { return one_of<std::int64_t>({0, 1, -1, 2, -2, 3, 4, 1, 0}); }
  RandomTensor tensor();
  RandomArgument of_list(const c10::Type& element);
  RandomArgument of_type(const c10::Type& type, const std::string& name);

  std::mt19937_64 random_;
  std::vector<RandomTensor> before_;  // of the same call
};

// For messages.
std::string text_of(const std::vector<RandomArgument>& arguments);

}  // namespace rehearse::capture::test
