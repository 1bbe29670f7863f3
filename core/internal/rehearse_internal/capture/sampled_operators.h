// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>

namespace rehearse::capture {

// True if the results of an operator may be inferred by running its kernel at other sizes or on made-up numbers. These
// are the operators whose inferred results were compared with eager mode (tests/data/compile/operators.tsv).
bool may_be_sampled(const std::string& operator_name);

// While it lives, all operators may be sampled. The program that writes the list uses it. Only one may live at a time.
// Not thread-safe.
class AllMayBeSampled {
 public:
  AllMayBeSampled();
  ~AllMayBeSampled();
  AllMayBeSampled(const AllMayBeSampled&) = delete;
  AllMayBeSampled& operator=(const AllMayBeSampled&) = delete;

  // The sampled operators, by name.
  const std::set<std::string>& seen() const noexcept { return seen_; }

 private:
  friend bool may_be_sampled(const std::string& operator_name);

  std::set<std::string> seen_;
};

}  // namespace rehearse::capture
