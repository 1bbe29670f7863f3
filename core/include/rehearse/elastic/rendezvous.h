// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse {

class RankContext;

namespace elastic {

// The limits of a round, by torchelastic's names.
struct RendezvousOptions {
  // A round of fewer ranks does not begin. 0: it takes all, so that a lost rank must come back. With half of them or
  // fewer, two parts of a job that do not reach each other go on as two jobs.
  int min_ranks = 0;

  // When min_ranks have joined, a rank waits so long for further ones before it completes the round.
  std::chrono::milliseconds last_call = std::chrono::seconds(30);

  // A rank waits so long for its round. 0: twice the timeout of the job's store, because ranks that wait for a lost one
  // in a collective may come only when that has timed out.
  std::chrono::milliseconds join{0};

  // Where its keys lie in the store. Of several in one job each has a name of its own; run() sees to that.
  std::string name = "rendezvous";
};

class RendezvousError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// No round was complete in time.
class RendezvousTimeoutError : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// The job is over: close() has been called.
class RendezvousClosedError : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// The ranks that go on together.
struct Members {
  int round = 0;           // counts up from 0
  std::vector<int> ranks;  // of the world, ascending
};

// Where the ranks of a job meet, through its store, to go on together: at the start, and each time that one has been
// lost. A round is open while ranks join it, and complete when it is decided, once and for all, who is in it: all
// ranks, or those that have come in time. Who comes later joins the next one.
//
// A rank that has begun again (RankContext::incarnation()) takes the place of its former life in a round that is open;
// in one that is complete it is not a member, and the others find that out by their first call that needs it.
//
// One for each rank, with equal options. Blocking: next(). Threads: as the context's store. The context outlives it.
// Errors: see each call; what the store throws.
class Rendezvous {
 public:
  // Throws std::invalid_argument when min_ranks is not in 0 ... size of the world, or a limit is negative.
  explicit Rendezvous(RankContext& context, const RendezvousOptions& options = {});

  // Blocks until a round is complete of which the rank is a member. Throws RendezvousTimeoutError with those that had
  // come, and RendezvousClosedError.
  Members next();

  // How many ranks wait for the round after `round`.
  int num_waiting(int round);

  // The job is over: ranks that wait for a round, or will, get RendezvousClosedError. By any rank, more than once.
  void close();

 private:
  using Joined = std::map<int, int>;  // incarnations by rank

  std::string read(const std::string& key);
  int open_round();
  Joined joined(int round);
  std::string complete(int round, const std::string& members);
  std::string members_of(int round, std::chrono::nanoseconds until);

  RankContext& context_;
  const RendezvousOptions options_;
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace elastic
}  // namespace rehearse
