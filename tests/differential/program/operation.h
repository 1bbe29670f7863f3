// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace rehearse_test::differential {

struct Net;
using Tensors = std::vector<at::Tensor>;

// The inputs of a running statement.
struct Given {
  Tensors tensors;
  std::vector<c10::SymInt> numbers;
  double factor = 0;
  Net* net = nullptr;
  std::int64_t* steps = nullptr;  // the caller's integer argument, whose changes the caller sees

  const at::Tensor& operator[](std::size_t i) const { return tensors[i]; }
  const c10::SymInt& size(std::size_t i) const { return numbers[i]; }
  // A number that must be plain: a dimension, or an index into a list.
  std::int64_t plain(std::size_t i) const { return numbers[i].guard_int(__FILE__, __LINE__); }
};

// How a statement uses its blocks.
enum class Control {
  None,
  Branch,      // runs its first block if the operation returns any tensor, otherwise its second block
  NoGrad,      // runs its block without gradients
  ForEach,     // runs its block for each part of its input along a dimension; the first output is that part
  Checkpoint,  // runs its block in a checkpoint with the inputs; returns the block's value, or if none, that of `run`
};

// The meaning of a number. It decides how the generator draws the number.
enum class Draw { Dimension, NewDimension, Index, Start, Length, Size, Few, Layer };

// How the other inputs must fit the first one.
enum class Match { Any, Broadcasts, Same, Inner, Covers };

// A kind of statement. In `text`, $0 is an input, #0 a number, % the factor, @0 a layer.
struct Operation {
  const char* name;
  const char* family;
  // A letter for each input: f floating point, b bool, i integer, a any.
  const char* wants;
  int outputs;
  std::vector<Draw> numbers;
  const char* text;
  Tensors (*run)(const Given& given);
  Match match = Match::Any;
  Control control = Control::None;
  // The index of the input that the operation changes; -1: none.
  int changes = -1;
};

const std::vector<Operation>& operations();
std::vector<std::string> families();
const Operation& operation(const std::string& name);

// The parts of the table that operations() returns.
using Operations = std::vector<Operation>;
Operations joined(std::initializer_list<std::span<const Operation>> parts);
Operations pointwise_operations();
Operations reducing_operations();
Operations matrix_operations();
Operations view_operations();
Operations changing_operations();
Operations filling_operations();
Operations joining_operations();
Operations indexing_operations();
Operations drawing_operations();
Operations control_operations();
Operations module_operations();
Operations mode_operations();
Operations collective_operations();
Operations keeping_operations();
Operations state_operations();
Operations unguarded_operations();
Operations loss_operations();

}  // namespace rehearse_test::differential
