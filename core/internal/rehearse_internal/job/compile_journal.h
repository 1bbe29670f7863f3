// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/exec/time.h>

namespace rehearse::compiler {

// What one rank did with one compiled function, as reports tell it. Written by that rank's fibers; it may be read when
// the world has ended.
class FunctionRecord {
 public:
  enum class Doing : std::uint8_t { Nothing, Agreeing, Compiling };

  // A call that did not find what it needed in the cache, or that compiled with the others.
  struct Compile {
    std::uint64_t call = 0;      // from 1
    std::string why;             // "y is 4, guard y == 3 of entry 0"; empty: the first one
    exec::CallSite where;        // the call's
    bool communicates = false;   // its graph has collectives, or ends with code of which that is not known
    VirtualTime at = kNotKnown;  // when it began; kNotKnown: outside of a world
    static constexpr VirtualTime kNotKnown = VirtualTime::min();
  };

  FunctionRecord(std::string name, int rank, bool meets) : name_(std::move(name)), rank_(rank), meets_(meets) {}

  // A call begins. Then either hit() or compiles() and done(); before them agrees(), where ranks compare their guards.
  void called() noexcept { ++calls_; }
  void agrees() noexcept { doing_ = Doing::Agreeing; }
  void hit(std::size_t entry) noexcept {
    doing_ = Doing::Nothing;
    last_hit_ = static_cast<std::int64_t>(entry);
  }
  void compiles(std::string why, exec::CallSite where);
  void communicates() noexcept { compiles_.back().communicates = true; }
  void done() noexcept { doing_ = Doing::Nothing; }

  const std::string& name() const noexcept { return name_; }
  int rank() const noexcept { return rank_; }
  bool meets() const noexcept { return meets_; }  // its compilations meet those of other ranks
  std::uint64_t calls() const noexcept { return calls_; }
  Doing doing() const noexcept { return doing_; }
  std::int64_t last_hit() const noexcept {
    return last_hit_;
  }  // the entry; -1: the last call compiled, or there is none
  const std::vector<Compile>& compiles() const noexcept { return compiles_; }

  // "compiles f (call 2: y is 4, guard y == 3 of entry 0)", "is in call 3 of f", "hit entry 0 in call 2", "compiled f
  // in call 1", "never called f".
  // `several`: of ranks of which the same is to be said.
  std::string text(bool several = false) const;

 private:
  const std::string name_;
  const int rank_;
  const bool meets_;
  std::uint64_t calls_ = 0;
  Doing doing_ = Doing::Nothing;
  std::int64_t last_hit_ = -1;
  std::vector<Compile> compiles_;
};

// The compiled functions of all ranks of a world. Lent to it by whoever runs it (exec::WorldLocal).
class Journal {
 public:
  std::shared_ptr<FunctionRecord> add(std::string name, int rank, bool meets);

  // In the order in which they were made.
  const std::vector<std::shared_ptr<FunctionRecord>>& functions() const noexcept { return functions_; }

 private:
  std::vector<std::shared_ptr<FunctionRecord>> functions_;
};

// A record of the calling rank, in the journal of its world where there is one. `meets`: compilations of the function
// meet those of other ranks.
std::shared_ptr<FunctionRecord> record_function(std::string name, bool meets);

// A call in which some of the ranks that made it compiled and others did not, of a function whose compilations do not
// meet.
struct Divergence {
  std::string function;
  std::uint64_t call = 0;
  std::vector<int> compiled, others;  // ranks
  std::string why;                    // of the first of `compiled`
  exec::CallSite where;
  std::vector<int> latest;    // of `compiled`: those that have not called it since
  bool communicates = false;  // what one of `compiled` made has collectives
};

// In order of functions, then of calls. Functions of the same name are told apart by their order in each rank.
std::vector<Divergence> divergences(const Journal& journal);

// "rank 1 alone recompiled f in call 3: y is 4, guard y == 3 of entry 0", without the place.
std::string to_string(const Divergence& divergence);

}  // namespace rehearse::compiler
