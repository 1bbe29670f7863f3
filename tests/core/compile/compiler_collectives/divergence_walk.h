// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/compile/compiler_collectives/divergence_model.h"

namespace rehearse::compiler {

// One rank's cache: entries for one length or for all, the branches of each, and what has been seen.
class CacheModel {
 public:
  explicit CacheModel(DivergentProgram::Kind kind) : kind_(kind) {}

  // Does an entry serve the length? Makes it the one that is looked at first.
  bool find(std::int64_t length);
  void see(std::int64_t length);
  void add(std::int64_t length);
  bool has_branch(bool negative) const { return entries_.front().branches[negative]; }
  void add_branch(bool negative) { entries_.front().branches[negative] = true; }

 private:
  struct Entry {
    std::optional<std::int64_t> length;  // none: all, or all of its class
    bool is_long = false;
    bool branches[2] = {};
  };
  const DivergentProgram::Kind kind_;
  std::vector<Entry> entries_;  // the one that was used last comes first
  std::optional<std::int64_t> seen_;
  bool varies_ = false;
};

// One rank on its way: it goes on by itself to what it has to wait in.
struct RankModel {
  enum class At { Guard, Compile, Reduce, Barrier, End };

  RankModel(const DivergentProgram& program, std::size_t rank)
      : program(program), rank(rank), cache(program.kind), compiles(program.lengths[rank].size(), 0) {}

  std::int64_t length() const { return program.lengths[rank][call]; }
  bool negative() const { return program.negative[rank][call]; }

  void begin_call();
  // Guards have been compared, or are not: does all that comes next exist?
  void guarded(bool is_served);
  // Ranks have met, or do not: it compiles.
  void compiled();
  void reduced();

  const DivergentProgram& program;
  const std::size_t rank;
  CacheModel cache;
  std::size_t call = 0;
  At at = At::End;
  bool has = false;           // at Guard: what it compares
  bool in_branch = false;     // behind the read
  int reductions = 0;         // that are left
  int minutes = 0;            // that this call's compilations take
  std::vector<int> compiles;  // 1: in that call

 private:
  void look(bool has_it);
  void behind_entry();
  void behind_code();
};

}  // namespace rehearse::compiler
