// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/documented_differences.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>

namespace rehearse_test::differential {
namespace {

constexpr const char* kChangedSince = "one of the variables needed for gradient";
constexpr const char* kMarkedTwice = "Expected to mark a variable ready only once";

struct Known {
  const char *text, *family;  // no family: each may cause it
};

bool is_among(std::span<const Known> known, const std::string& text, const std::set<std::string>& families) {
  return std::any_of(known.begin(), known.end(), [&](const Known& each) {
    return text.find(each.text) != std::string::npos && (each.family == nullptr || families.contains(each.family));
  });
}

}  // namespace

bool changed_since(const std::string& error) { return error.find(kChangedSince) != std::string::npos; }

bool is_marked_ready_twice(const Difference& difference) {
  return difference.kind.starts_with("throws in ") && difference.kind.find(kMarkedTwice) != std::string::npos;
}

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
                                       kMarkedTwice,
                                       "index out of range in self",
                                       "is out of bounds for dimension"};
  return misses_an_error(outcome) && std::any_of(std::begin(errors), std::end(errors), [&](const char* error) {
           return outcome.difference->kind.find(error) != std::string::npos;
         });
}

bool is_documented_refusal(const std::string& refusal, const std::set<std::string>& families) {
  static constexpr Known kRefusals[] = {
      {"The memory of a fake tensor was asked for", "swallow"},
      {"is called in another thread", "thread"},
      {"the default generator is seeded", "generator"},
      {"set_data() replaces", "flags"},
      {"detach_() takes", "flags"},
      {"requires_grad_() changes", "flags"},
      {"is told to require grad inside of a captured function", "flags"},
      {"a tensor that was captured outlives the call", "member"},
      {"a hook is registered on a tensor", "kept_hook"},
      {"a hook is registered on a tensor", "hook"},
      {"custom autograd function", "function"},
      {"_version() counts", "facts"},
      {"is_leaf() is asked", "facts"},
      {"is_leaf() is asked", "flags"},
      {"a collective with a gradient", "collective"},
      {"after a read of data, an argument, parameter or buffer begins to require grad", nullptr},
      {"is_view() is asked", "facts"},
      {"the gradient of a tensor is looked at", "facts"},
      {"storage_bytes() is called behind a read", "storage"},
      {"version() is called behind a read", "versions"},
      {"changes the sizes or strides of", "form"},
      {"changes the sizes of an argument before it reads data", "form"},
      {"is known only when the program runs with its data", "unbacked"}};
  return is_among(kRefusals, refusal, families);
}

bool is_documented_error(const Difference& difference, const std::set<std::string>& families) {
  static constexpr Known kErrors[] = {{"the function keeps a tensor that is no result of it", "member"},
                                      {"is called with an undefined gradient", "hook"},
                                      {"a hook is registered on a tensor behind a read", "kept_hook"},
                                      {"is_view() is asked", "facts"},
                                      {"changes the sizes of an argument before it reads data", "form"}};
  if (difference.kind.starts_with("throws in backward") && changed_since(difference.text) &&
      difference.text.find("of CompiledBackward(") != std::string::npos) {
    return true;  // the backward of a graph needs the saved tensors of all its results
  }
  return difference.kind.starts_with("throws in ") && is_among(kErrors, difference.text, families);
}

bool is_result_from_outside(const Outcome& outcome) {
  return outcome.gives_outside && outcome.difference && outcome.difference->kind.starts_with("wrong result  is");
}

}  // namespace rehearse_test::differential
