// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace rehearse_test::differential {

struct Operation;

// A number in a statement. A constant is `add` itself. Any other number is `add` plus the call's integer argument or a
// size of a value.
struct Number {
  static constexpr int kConstant = -1, kCount = -2;

  std::int64_t add = 0;
  int of = kConstant;  // the number of a value, kConstant or kCount
  int dimension = 0;
  bool symbolic = false;  // calls sym_size() instead of size()
};

struct Statement;

// The statements in a branch, loop, mode or checkpoint. `yields` is the value that the block returns; -1: none.
struct Block {
  std::vector<Statement> statements;
  int yields = -1;
};

// One line of a program. Values have numbers; see Program.
struct Statement {
  const Operation* operation = nullptr;
  std::vector<int> inputs;
  std::vector<Number> numbers;
  double factor = 0;
  std::vector<int> outputs;
  std::vector<Block> blocks;
};

// A size of an argument: fixed, or one of the sizes that differ between calls.
struct Size {
  static constexpr int kFixed = -1;

  std::int64_t fixed = 0;
  int varies = kFixed;  // the index of the varying size
};

enum class Form {
  Plain,         // requires no gradient
  Leaf,          // requires a gradient
  Computed,      // the result of an operator on a leaf
  View,          // a view of a computed tensor
  Transposed,    // its memory is in another order
  Sliced,        // every second row of a larger tensor
  SameAsBefore,  // the same tensor as the previous argument
  Overlapping,   // shares memory with the previous argument
};

struct Argument {
  std::vector<Size> sizes;
  c10::ScalarType dtype = c10::ScalarType::Double;
  Form form = Form::Plain;
  bool odd = false;  // some elements are NaN or infinite

  bool is_floating() const { return dtype == c10::ScalarType::Double || dtype == c10::ScalarType::Float; }
};

// The tensors from which the test runs the backward: results, and arguments that have a history.
enum class Backward { AllTogether, SumOfAll, FirstAlone, OneByOne, None };

// The tensor that the caller changes in place between the call and the backward. Result: the first tensor from which
// the backward starts. Argument: the first floating-point argument.
enum class Change { None, Result, Argument };

// A program as data. One function interprets it, in eager mode or inside compile(). Values are numbered: first the
// arguments, then the free tensors of the module, then the results of statements.
struct Program {
  std::uint64_t seed = 0;
  std::vector<Argument> arguments;
  std::vector<std::string> layers;  // each is one of layer_kinds()
  std::vector<Statement> statements;
  std::vector<int> results;
  Backward backward = Backward::AllTogether;
  Change change = Change::None;
  bool returns_all = false;  // returns every value instead of `results`, so that no statement is dead code

  int first_free() const { return static_cast<int>(arguments.size()); }
};

// The number of statements, including those inside blocks.
int statements_in(const std::vector<Statement>& statements);
std::set<std::string> families_of(const std::vector<Statement>& statements);
int families_in(const std::vector<Statement>& statements);
bool communicates(const std::vector<Statement>& statements);
// Returns whether there are writes under PreserveVersion. The second function replaces them by writes that autograd
// counts.
bool has_uncounted_writes(const std::vector<Statement>& statements);
Program with_counted_writes(Program program);
// Returns whether parts of the program compute in single precision.
bool has_singles(const Program& program);
// How many values the program has: one more than the largest number of a value.
int values_of(const Program& program);

}  // namespace rehearse_test::differential
