// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <rehearse/elastic/rendezvous.h>
#include <rehearse/job/group.h>

namespace rehearse::elastic {

struct Options {
  RendezvousOptions rendezvous = {};
  // A rank that has lost its group more often gives up: what was thrown then leaves run(). As torchelastic's.
  int max_restarts = 3;
};

// One try of a job, by the ranks that are there. Valid while the body runs.
class Round {
 public:
  // Made and given by run().
  Round(RankContext& context, Rendezvous& rendezvous, Members members, int restart_count, int run = 1);

  int run() const noexcept { return run_; }  // of the rank's calls of run() the how many, from 1
  int number() const noexcept { return members_.round; }
  const std::vector<int>& ranks() const noexcept { return members_.ranks; }  // of the world, by rank in the group
  const Group& group() const noexcept { return group_; }
  int restart_count() const noexcept { return restart_count_; }  // how many rounds this rank has lost before
  RankContext& context() const noexcept { return context_; }

  // Ends this round on all of its ranks when others wait to be let in (who were lost, and came back too late): its
  // group's first rank asks, and tells the rest by a broadcast. Where it ends, an exception goes through the body that
  // run() alone catches. For jobs that go on with fewer ranks (RendezvousOptions::min_ranks); once a step, or once for
  // each checkpoint.
  void let_in_waiting();

 private:
  RankContext& context_;
  Rendezvous& rendezvous_;
  const Members members_;
  const int restart_count_;
  const int run_;
  Group group_;
};

// Runs `body` until it has come to its end on all ranks of a round: a job that survives the loss of ranks.
//
//   rehearse::elastic::run(ctx, [&](rehearse::elastic::Round& round) {
//     Net net;
//     torch::optim::SGD optimizer(net->parameters(), 0.1);
//     rehearse::elastic::Checkpoint checkpoint(round, *net, optimizer);
//     auto step = checkpoint.load();
//     rehearse::DistributedDataParallel ddp(net, round.group());
//     for (; step < steps; checkpoint.save(++step)) train_step(ddp, optimizer, round.group(), step);
//   });
//
// Where a call on the round's group throws c10::DistBackendError (CommError, TimeoutError) and the body lets it
// through, the rank aborts its calls on the group, joins the next round, and begins the body again; so does a rank that
// was lost and has begun again, from the start of its program. A body thus makes what it needs, and takes up from the
// last Checkpoint. At its end ranks meet in a barrier of the group, so that none leaves that others may yet need.
//
// A job may have several, one after the other and not one inside of another, which all ranks call in the same order;
// each has checkpoints of its own.
// A rank that begins again in a later one gets false of those that are over.
//
// True: this rank was there at the end. False: the others had come to the end before it was back.
// Blocking: as the body; between rounds until the next one is complete. Errors: what else leaves the body;
// the error of the group after max_restarts; RendezvousTimeoutError.
bool run(RankContext& context, const std::function<void(Round&)>& body, const Options& options = {});

}  // namespace rehearse::elastic
