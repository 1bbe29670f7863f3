// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/job/verdict.h>

namespace rehearse::compiler {

// A program of the sweep: each rank calls a function of tensors with lengths of its own, perhaps with a barrier after
// each call.
struct DivergentProgram {
  enum class Together { Nobody, Compilers, Guards, Both };
  enum class Kind {
    Plain,
    Reduces,  // the function all-reduces, twice where a tensor is long
    Reads,    // it reads its sum's sign and goes on in two ways
    Splits,   // the forward of a DDP module, with a backward; ranks may have other buckets
  };

  Together together = Together::Nobody;
  Kind kind = Kind::Plain;
  bool barriers = false;
  bool slow = false;                               // compiling takes longer than a barrier may
  bool jitter = false;                             // and on each rank another time, within the limits
  bool fails = false;                              // a lone compilation is a failure
  bool renamed = false;                            // the last rank calls it g
  bool fixed_buckets = false;                      // DDP keeps those that each rank begins with
  std::vector<bool> small_buckets;                 // by rank
  std::vector<std::vector<std::int64_t>> lengths;  // by rank, of each call
  std::vector<std::vector<bool>> negative;         // the same, of the values

  int ranks() const { return static_cast<int>(lengths.size()); }
  bool guards() const { return together == Together::Guards || together == Together::Both; }
  bool compilers() const { return together == Together::Compilers || together == Together::Both; }
  static bool is_long(std::int64_t length) { return length > 4; }
  std::string text() const;  // for messages of the test
};

// The program of a seed: 2 to 16 ranks, 1 to 5 calls, lengths and signs that mostly agree.
DivergentProgram program_of(std::uint64_t seed);

// What is to come of it, found by walking through the calls with each rank's cache as a set of lengths and branches:
// nothing of the product is used.
struct Expected {
  Verdict verdict = Verdict::ok;
  std::vector<std::string> in_headline;
  std::vector<std::string> remarks;        // parts of them
  std::vector<std::vector<int>> compiles;  // by rank, of each call, where all of them end
};
Expected expectation(const DivergentProgram& program);

}  // namespace rehearse::compiler
