// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/job/verdict.h>

namespace rehearse::compiler {

// A program of the sweep. Each rank calls a function with tensors of its own lengths. There may be a barrier after each
// call.
struct DivergentProgram {
  enum class Together { Nobody, Compilers, Guards, Both };
  enum class Kind {
    Plain,
    Reduces,  // the function all-reduces once, or twice if the tensor is long
    Reads,    // the function reads the sign of its sum and takes one of two branches
    Splits,   // the forward of a DDP module, with a backward; ranks may have different buckets
  };

  Together together = Together::Nobody;
  Kind kind = Kind::Plain;
  bool barriers = false;
  bool slow = false;                               // compiling takes longer than a barrier's timeout
  bool jitter = false;                             // compile times differ between ranks, within the timeout
  bool fails = false;                              // a compilation on only some ranks is a failure
  bool renamed = false;                            // on the last rank the function has the name g
  bool fixed_buckets = false;                      // DDP keeps each rank's first buckets
  std::vector<bool> small_buckets;                 // by rank
  std::vector<std::vector<std::int64_t>> lengths;  // by rank, for each call
  std::vector<std::vector<bool>> negative;         // by rank, for each call: the values are negative

  int ranks() const { return static_cast<int>(lengths.size()); }
  bool guards() const { return together == Together::Guards || together == Together::Both; }
  bool compilers() const { return together == Together::Compilers || together == Together::Both; }
  static bool is_long(std::int64_t length) { return length > 4; }
  std::string text() const;  // for the test's messages
};

// The program of a seed: 2 to 16 ranks, 1 to 5 calls, lengths and signs that mostly agree.
DivergentProgram program_of(std::uint64_t seed);

// The result that a program must have. The model goes through the calls of each rank and keeps the lengths and branches
// that the rank's cache has. It uses no code of core/compile.
struct Expected {
  Verdict verdict = Verdict::ok;
  std::vector<std::string> in_headline;
  std::vector<std::string> remarks;        // parts of their texts
  std::vector<std::vector<int>> compiles;  // by rank, for each call; only for the verdict OK
};
Expected expectation(const DivergentProgram& program);

}  // namespace rehearse::compiler
