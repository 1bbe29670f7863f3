// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/job/verdict.h>

namespace rehearse::compiler {

// A program of the sweep: each rank calls f(x) = x.sum() with lengths of its own, perhaps with a barrier after each
// call.
struct DivergentProgram {
  enum class Together { Nobody, Compilers, Guards, Both };

  Together together = Together::Nobody;
  bool barriers = false;
  bool slow = false;                               // compiling takes longer than a barrier may
  bool jitter = false;                             // and on each rank another time, within the limits
  bool fails = false;                              // a lone compilation is a failure
  bool renamed = false;                            // the last rank calls it g
  std::vector<std::vector<std::int64_t>> lengths;  // by rank, of each call

  int ranks() const { return static_cast<int>(lengths.size()); }
  std::string text() const;  // for messages of the test
};

// The program of a seed: 2 to 16 ranks, 1 to 5 calls, lengths that mostly agree.
DivergentProgram program_of(std::uint64_t seed);

// What is to come of it, found by walking through the calls with each rank's cache as a set of lengths: nothing of the
// product is used.
struct Expected {
  Verdict verdict = Verdict::ok;
  std::vector<std::string> in_headline;
  std::vector<std::string> remarks;        // beginnings
  std::vector<std::vector<int>> compiles;  // by rank, of each call, where all of them end
};
Expected expectation(const DivergentProgram& program);

}  // namespace rehearse::compiler
