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

// The limits of a round, named as in torchelastic.
struct RendezvousOptions {
  // A round needs at least this many ranks. 0: all ranks, so that a lost rank must come back. With half of the ranks or
  // fewer, two parts of a job that cannot reach each other would go on as two jobs.
  int min_ranks = 0;

  // A waiting rank checks at these intervals whether min_ranks have joined. If they have, it completes the round
  // without those that are missing.
  std::chrono::milliseconds last_call = std::chrono::seconds(30);

  // How long a rank waits for its round. 0: twice the timeout of the job's store (a year if the store has none). The
  // reason is that a rank that waits for a lost one in a collective may join only after that collective has timed out.
  std::chrono::milliseconds join{0};

  // The prefix of the rendezvous' keys in the store. If a job has several rendezvous, each needs its own name; run()
  // derives a name for each of its calls.
  std::string name = "rendezvous";
};

class RendezvousError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// No round was completed in time.
class RendezvousTimeoutError : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// The job is over: a rank has called close().
class RendezvousClosedError : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

// The ranks of a round.
struct Members {
  int round = 0;           // counts up from 0
  std::vector<int> ranks;  // ranks of the world, ascending
};

// The ranks of a job find each other here, through the job's store: at the start, and after each loss of a rank. A
// round is open while ranks join it. It is complete once its members are decided for good: all ranks, or those that
// came in time. A rank that arrives later joins the next round.
//
// A rank that has been restarted (RankContext::incarnation()) replaces its previous incarnation in a round that is
// open. If the round is complete, the new incarnation is not a member; the members notice the loss at their first call
// that needs the rank.
//
// Each rank makes one Rendezvous, with equal options. Blocking: next(). Threads: as the context's store. The context
// must outlive the Rendezvous.
// Errors: those that each function states, and the errors of the store.
class Rendezvous {
 public:
  // Throws std::invalid_argument if min_ranks is not in 0 ... world size, or if a limit is negative.
  explicit Rendezvous(RankContext& context, const RendezvousOptions& options = {});

  // Joins and blocks until a round that includes this rank is complete. Throws RendezvousTimeoutError, which names the
  // ranks that had joined, and RendezvousClosedError.
  Members next();

  // How many ranks wait for the round after `round`.
  int num_waiting(int round);

  // Ends the job: ranks that wait for a round now or later get RendezvousClosedError. Any rank may call it, repeatedly.
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
