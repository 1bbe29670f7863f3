// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/compile/compiler_collectives/divergence_model.h"

namespace rehearse::compiler {

// A model of one rank's cache: entries for one length or for all lengths, the branches of each entry, and whether the
// length varies.
class CacheModel {
 public:
  explicit CacheModel(DivergentProgram::Kind kind) : kind_(kind) {}

  // Returns whether an entry serves the length, and if so moves it to the front.
  bool find(std::int64_t length);
  void see(std::int64_t length);
  void add(std::int64_t length);
  bool has_branch(bool negative) const { return entries_.front().branches[negative]; }
  void add_branch(bool negative) { entries_.front().branches[negative] = true; }

 private:
  struct Entry {
    std::optional<std::int64_t> length;  // none: all lengths (Kind::Reduces: all with the same is_long)
    bool is_long = false;
    bool branches[2] = {};
  };
  const DivergentProgram::Kind kind_;
  std::vector<Entry> entries_;  // the most recently used first
  std::optional<std::int64_t> seen_;
  bool varies_ = false;
};

// A model of one rank. begin_call(), guarded(), compiled() and reduced() continue until the rank must wait for other
// ranks, or has made all calls.
struct RankModel {
  enum class At { Guard, Compile, Reduce, Barrier, End };

  RankModel(const DivergentProgram& program, std::size_t rank)
      : program(program), rank(rank), cache(program.kind), compiles(program.lengths[rank].size(), 0) {}

  std::int64_t length() const { return program.lengths[rank][call]; }
  bool negative() const { return program.negative[rank][call]; }

  void begin_call();
  // Continues after the guards. `is_served`: the cache has the entry or branch that the call needs; with guard
  // collectives, the caches of all ranks have it.
  void guarded(bool is_served);
  // The rank has compiled: adds the entry or the branch to its cache and continues.
  void compiled();
  void reduced();

  const DivergentProgram& program;
  const std::size_t rank;
  CacheModel cache;
  std::size_t call = 0;
  At at = At::End;
  bool has = false;           // at Guard: whether this rank's cache serves the call
  bool in_branch = false;     // past the read
  int reductions = 0;         // all-reduces left to do
  int minutes = 0;            // compile time of this call
  std::vector<int> compiles;  // 1 for each call that compiled

 private:
  void look(bool has_it);
  void behind_entry();
  void behind_code();
};

}  // namespace rehearse::compiler
