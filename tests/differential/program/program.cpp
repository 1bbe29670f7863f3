// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/program.h"

#include <algorithm>
#include <set>
#include <string>

#include "differential/program/net.h"
#include "differential/program/operation.h"

namespace rehearse_test::differential {
namespace {

template <class Statements, class Visit>
void for_each_statement(Statements& statements, Visit&& visit) {
  for (auto& statement : statements) {
    visit(statement);
    for (auto& block : statement.blocks) for_each_statement(block.statements, visit);
  }
}

bool is_uncounted(const Statement& statement) { return statement.operation->name == std::string("uncounted mul_"); }

}  // namespace

int statements_in(const std::vector<Statement>& statements) {
  int count = 0;
  for_each_statement(statements, [&](const Statement&) { ++count; });
  return count;
}

std::set<std::string> families_of(const std::vector<Statement>& statements) {
  std::set<std::string> families;
  for_each_statement(statements, [&](const Statement& statement) { families.insert(statement.operation->family); });
  return families;
}

int families_in(const std::vector<Statement>& statements) { return static_cast<int>(families_of(statements).size()); }

bool communicates(const std::vector<Statement>& statements) {
  bool found = false;
  for_each_statement(statements, [&](const Statement& statement) {
    found = found || statement.operation->family == std::string("collective");
  });
  return found;
}

bool has_uncounted_writes(const std::vector<Statement>& statements) {
  bool found = false;
  for_each_statement(statements, [&](const Statement& statement) { found = found || is_uncounted(statement); });
  return found;
}

Program with_counted_writes(Program program) {
  for_each_statement(program.statements, [](Statement& statement) {
    if (is_uncounted(statement)) statement.operation = &operation("counted mul_");
  });
  return program;
}

bool has_singles(const Program& program) {
  const auto is_single = [](const Argument& argument) { return argument.dtype == c10::ScalarType::Float; };
  return std::any_of(program.arguments.begin(), program.arguments.end(), is_single) ||
         std::any_of(program.layers.begin(), program.layers.end(), is_single_layer) ||
         families_of(program.statements).contains("single");
}

int values_of(const Program& program) {
  int values = program.first_free() + static_cast<int>(free_names().size());
  for_each_statement(program.statements, [&](const Statement& statement) {
    for (const int output : statement.outputs) values = std::max(values, output + 1);
  });
  return values;
}

}  // namespace rehearse_test::differential
