// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "differential/program/interpret.h"

namespace rehearse_test::differential {

// Gives the same numbers on every machine, unlike the distributions of <random>.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }

 private:
  std::uint64_t state_;
};

// Draws statements that suit the values of a program. They may still fail when they run.
class Proposer {
 public:
  Proposer(const Program& program, const std::vector<std::string>& families, Random& random)
      : program_(program), families_(families), random_(random) {}

  // Runs the program to find its values. With First or Second, every branch runs that block. With Ask, runs the program
  // twice, once with First and once with Second, and keeps the values that exist in both runs. Returns false if the
  // program throws.
  bool look(Answer answer);

  std::optional<Statement> propose(bool may_nest);
  int any_value();
  // Draws a result of the program: mostly a late value, sometimes an argument.
  int result();

 private:
  const at::Tensor& tensor(int value) const { return values_[static_cast<std::size_t>(value)]; }
  bool suits(int value, char wants) const;
  bool matches(int value, int first, Match match) const;
  std::optional<int> choose(char wants, const std::vector<int>& before, Match match, bool changed = false);
  Number draw(Draw what, const Statement& statement);
  Number any_size(bool constants);
  std::optional<Statement> fill_in(const Operation& operation);
  const Operation& choose_operation();

  const Program& program_;
  const std::vector<std::string>& families_;
  Random& random_;
  Tensors values_;
};

}  // namespace rehearse_test::differential
