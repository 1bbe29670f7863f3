// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/documented_differences.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace rehearse_test::differential {
namespace {

constexpr const char* kChangedSince = "one of the variables needed for gradient";

}  // namespace

bool changed_since(const std::string& error) { return error.find(kChangedSince) != std::string::npos; }

std::optional<Difference> compare_with_copies(const Observed& eager, const Observed& copies, const Observed& compiled) {
  const bool is_refused = eager.thrown_in == "backward" && compiled.thrown_in.empty() && changed_since(eager.error);
  if (!is_refused) return compare(eager, compiled);
  if (copies.has_twins || !copies.thrown_in.empty()) return std::nullopt;
  return compare(copies, compiled);
}

void allow_other_bits(Observed& expected) {
  for (Fact& fact : expected.facts) {
    fact.exact =
        fact.exact && !(fact.values.defined() && (fact.values.is_floating_point() || fact.values.is_complex()));
  }
}

void leave_out_strides_of_empty_tensors(Observed& seen) {
  std::set<std::string> empty;
  for (const Fact& fact : seen.facts) {
    if (fact.values.defined() && fact.values.numel() == 0) empty.insert(fact.name + " strides");
  }
  for (Fact& fact : seen.facts) {
    if (empty.contains(fact.name)) fact.text = "of an empty tensor";
  }
}

bool misses_an_error(const Outcome& outcome) {
  return outcome.difference && outcome.difference->kind.starts_with("does not throw");
}

bool is_error_of_eager_alone(const Outcome& outcome) {
  static const char* const errors[] = {kChangedSince,
                                       "a leaf Variable that requires grad is",
                                       "rehearse::checkpoint(): the code changes its input",
                                       "Expected to mark a variable ready only once",
                                       "index out of range in self",
                                       "is out of bounds for dimension"};
  return misses_an_error(outcome) && std::any_of(std::begin(errors), std::end(errors), [&](const char* error) {
           return outcome.difference->kind.find(error) != std::string::npos;
         });
}

bool is_result_from_outside(const Outcome& outcome) {
  return outcome.gives_outside && outcome.difference && outcome.difference->kind.starts_with("wrong result  is");
}

}  // namespace rehearse_test::differential
