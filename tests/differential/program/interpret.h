// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "differential/program/operation.h"
#include "differential/program/program.h"

namespace rehearse_test::differential {

// The block that branches take. Programs under test evaluate the condition (Ask). The generator runs a program with
// First and with Second, so that every block runs.
enum class Answer { Ask, First, Second };

// Blocks: a statement sees no values of a block that has ended. Everywhere: a statement sees them. The generator needs
// Everywhere to look into a block, and so do programs that return every value (Program::returns_all).
enum class Scope { Blocks, Everywhere };

struct Interpreted {
  Tensors results;
  Tensors values;  // by number; undefined if no statement computed it, or (Scope::Blocks) if its block has ended
};

// Runs the statements in order. Throws the operators' exceptions, and std::logic_error if a value is missing. For the
// generator, also throws std::logic_error if the code of a checkpoint changes a tensor from outside in place, or
// returns a tensor that shares memory with one from outside.
Interpreted interpret(const Program& program, const Tensors& arguments, std::int64_t count, std::int64_t& steps,
                      Net* net, Answer answer = Answer::Ask, Scope scope = Scope::Blocks);

}  // namespace rehearse_test::differential
