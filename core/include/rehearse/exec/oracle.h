// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <rehearse/exec/access.h>

namespace rehearse {

// The subject of a choice. Decision logs contain the numbers: add at the end, never renumber.
enum class ChoiceKind : std::uint8_t {
  next_fiber = 0,          // candidates: ids of the fibers that can run; new ones join at the end; kTimePasses
  receive_any_source = 1,  // candidates: source ranks (within the group) whose message could be taken
  latency = 2,             // candidates: 0..n-1, a step of the time of a transfer, a compilation or a call on a file
  fault = 3,               // candidates: {0 = no, 1 = yes}, or 0..n-1, the possible draws of a swarm
  compile_cache = 4,       // candidates: {number of a stored graph = read the graph, 0 = compile it}
  equal_timers = 5,        // candidates: 0..n-1, the timers of one due time as they were armed; only with patience
  listing = 6,             // candidates: 0..n-1, in which order a rank sees the files of a folder; only with patience
};

std::string_view to_string(ChoiceKind kind) noexcept;

// A candidate of ChoiceKind::next_fiber, always the last one: no fiber runs, and time passes to the next event. Only in
// worlds with WorldOptions::patience.
inline constexpr std::uint32_t kTimePasses = 0xFFFF'FFFF;

// What an oracle may ask during a run about the candidates of ChoiceKind::next_fiber.
class FiberFacts {
 public:
  virtual Access next_access(std::uint32_t fiber) const = 0;

 protected:
  ~FiberFacts() = default;
};

// Answers every choice that a run leaves open. An implementation is a seeded generator, a search, a fixed order or a
// log. Everything else in a simulated run is a function of the program and of these answers.
//
// Called on the executor's thread only. If it throws, as a replay that no longer fits does, the executor ends the world
// and rethrows from run().
class Oracle {
 public:
  virtual ~Oracle() = default;

  // Called before the first choice of a run. `facts` lives until the run ends. Returns whether the oracle will ask for
  // accesses; if not, the run does not collect them.
  virtual bool begin([[maybe_unused]] const FiberFacts& facts) { return false; }

  // Returns an index into `candidates`, which has at least two entries: a choice with one candidate is never asked.
  //
  // `weights` says how likely each candidate is compared with the others; empty: all are equally likely. Otherwise it
  // has one number for each candidate, and their sum is from 1 to 2^32 - 1. A seeded oracle draws by the weights and
  // never picks a candidate of weight 0. A search, a fixed order and a log ignore the weights, because unlikely things
  // may happen.
  virtual std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                               std::span<const std::uint32_t> weights = {}) = 0;
};

}  // namespace rehearse
