// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::compiler {

// Why an entry of the cache did not serve a call: the first of its guards that failed. If all of them held, the reason
// is that the function gives another graph.
struct GuardFailure {
  std::string source;    // the guarded value: "x.size(0)", "k", "net.weight", "grad mode"
  std::string expected;  // "4"
  std::string found;     // "5"
  std::string line;      // the user's line that the guard comes from, "model.cpp:12"; empty if unknown
};

// "x.size(0): expected 4, found 5 (model.cpp:12)".
std::string text_of(const GuardFailure& failure);

}  // namespace rehearse::compiler
