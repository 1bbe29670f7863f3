// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <rehearse/elastic/rendezvous.h>
#include <rehearse/job/group.h>

namespace rehearse::elastic {

struct Options {
  RendezvousOptions rendezvous = {};
  // How many lost rounds a rank survives. After one more, run() rethrows the error that ended the round. As in
  // torchelastic.
  int max_restarts = 3;
};

// One attempt at a job by the ranks that are present. Valid while the body runs.
class Round {
 public:
  // Programs get their rounds from run().
  Round(RankContext& context, Rendezvous& rendezvous, Members members, int restart_count, int run = 1);

  int run() const noexcept { return run_; }  // which of the rank's calls of run() this is, from 1
  int number() const noexcept { return members_.round; }
  // Ranks of the world, in the order of the group.
  const std::vector<int>& ranks() const noexcept { return members_.ranks; }
  const Group& group() const noexcept { return group_; }
  int restart_count() const noexcept { return restart_count_; }  // rounds that this rank has lost in this run()
  RankContext& context() const noexcept { return context_; }

  // Ends this round on all of its ranks if other ranks (lost, and back too late) wait to join. The group's first rank
  // asks the store and broadcasts the answer. To end the round, this function throws an exception that the body must
  // let through; run() catches it. For jobs that go on with fewer ranks (RendezvousOptions::min_ranks). Call it once
  // per step, or once per checkpoint.
  void let_in_waiting();

 private:
  RankContext& context_;
  Rendezvous& rendezvous_;
  const Members members_;
  const int restart_count_;
  const int run_;
  Group group_;
};

// Runs `body` until it has finished on all ranks of a round: a job that survives the loss of ranks.
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
// If a call throws c10::DistBackendError (CommError, TimeoutError) or an exception of gloo, and the body lets it
// through, the round is lost: the rank aborts its calls on the round's group, joins the next round and starts the body
// again. A rank that was lost and restarted does the same from the start of its program. Therefore the body must make
// everything that it needs, and resume from the last Checkpoint. At the end the ranks meet in a barrier of the group,
// so that no rank leaves while others may still need it.
//
// A job may call run() several times, one after the other but not nested. All ranks must make these calls in the same
// order; each call has its own checkpoints. If a rank restarts during a later call, it repeats the earlier calls, and
// these return false.
//
// Returns true if this rank was in the round that finished, false if the others finished before it was back. Blocking:
// as the body, and between rounds until the next one is complete. Errors: every exception that leaves the body without
// losing the round; MismatchError, because the next round would repeat it; the error of the round that was lost after
// max_restarts; RendezvousTimeoutError.
bool run(RankContext& context, const std::function<void(Round&)>& body, const Options& options = {});

}  // namespace rehearse::elastic
