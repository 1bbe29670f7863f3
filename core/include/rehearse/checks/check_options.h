// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse::checks {

// The options of one call of a state checker.
struct CheckOptions {
  // Pairs the calls: the n-th check of a name on one rank is compared with the n-th check of that name on the other
  // ranks. Reports show the name.
  std::string name = {};        // empty: the checker's own name
  std::vector<int> ranks = {};  // ranks of the world whose state is compared; empty: all
  // Whether buffers are checked. nullopt: yes, except that comparisons leave out the buffers of a
  // DistributedDataParallel that broadcasts its buffers in the next forward, and check_finite() looks only for NaN in
  // buffers.
  std::optional<bool> buffers = {};
  // For gradients and steps: the largest relative error that passes. 0: 1e-3 for float, 1e-6 for double, 2e-2 for
  // shorter types.
  double tolerance = 0;
};

// How the states of the ranks' default generators must relate.
enum class Draws {
  same,       // every rank has drawn the same numbers
  different,  // no two ranks draw the same
};

// Checks that run although the program does not ask for them. Simulations run `replicas` and `draws` at each forward of
// a DistributedDataParallel or FullyShardedDataParallel that runs with grad mode on, and `replicas` once more when a
// DistributedDataParallel, or a FullyShardedDataParallel with hybrid sharding, is destroyed. Forwards of a
// DistributedDataParallel inside no_sync() or join() are not checked. Simulations run `finite` at each transfer that
// reduces.
struct AutomaticChecks {
  // The parameters are the same on all ranks, and so are the buffers if the DistributedDataParallel broadcasts them.
  // nullopt: forwards and ends are compared, too, but a difference is only a remark, because it may be on purpose. It
  // is a finding nevertheless if the replicas were equal in one forward and differ in the next and at the end, and the
  // Reducer itself has all-reduced all gradients between these forwards: without no_sync(), join() and a communication
  // hook of the program.
  std::optional<bool> replicas = {};
  // No rank contributes NaN or Inf to a sum, mean or product, and no result of these contains one. No rank contributes
  // NaN to a minimum or maximum.
  bool finite = false;
  std::optional<Draws> draws = {};
  // Watch each operator, so that a finding can say where the bad value arose. A run that is repeated to explain a
  // finding sets this.
  bool explain = false;

  bool compares_replicas() const noexcept { return replicas.value_or(true); }
  bool any() const noexcept { return replicas || finite || draws || explain; }
};

}  // namespace rehearse::checks
