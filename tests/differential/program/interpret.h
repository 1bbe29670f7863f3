// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "differential/program/operation.h"
#include "differential/program/program.h"

namespace rehearse_test::differential {

// Which block branches take. The generator runs each block once; programs that are tested answer by themselves.
enum class Answer { Ask, First, Second };

// May statements see values that blocks before them have given? The generator looks into blocks.
enum class Scope { Blocks, Everywhere };

struct Interpreted {
  Tensors results;
  Tensors values;  // by number; undefined where no statement that ran gave one
};

// Runs the statements in order. Throws what the operators throw, and std::logic_error if a value is missing.
Interpreted interpret(const Program& program, const Tensors& arguments, std::int64_t count, std::int64_t& steps,
                      Net* net, Answer answer = Answer::Ask, Scope scope = Scope::Blocks);

}  // namespace rehearse_test::differential
