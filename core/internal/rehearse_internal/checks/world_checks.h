// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <rehearse/checks/check_options.h>
#include <rehearse/checks/model_state.h>
#include <rehearse/job/state_finding.h>
#include <rehearse_internal/checks/origins.h>
#include <rehearse_internal/checks/reductions.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/operators/seen_operators.h>

namespace rehearse::checks {

// The state checkers of one world, all of whose ranks are in this process: what ranks have shown of their state, until
// those have come with whose it is compared. Whoever comes last judges; nobody waits, no collective is made, no time
// passes, and nothing is drawn. A finding ends the world. Programs use RankContext::check_replicas() and its like.
//
// Lent to rooms that know of no worlds by exec::WorldLocal<WorldChecks>. Fibers: the calls belong in a rank's fiber,
// found() and origins() anywhere on the executor's thread; none of them blocks. What it is given outlives it.
class WorldChecks {
 public:
  using Counts = std::map<std::string, std::uint64_t>;
  using LabelOf = std::function<std::string(int rank)>;

  // `held`: how often each check was made and found nothing.
  WorldChecks(exec::RankExecutor& executor, AutomaticChecks automatic, Counts& held, LabelOf label_of);
  WorldChecks(const WorldChecks&) = delete;
  WorldChecks& operator=(const WorldChecks&) = delete;
  ~WorldChecks();

  // See RankContext. Throw std::invalid_argument for CheckOptions that make no sense.
  void replicas(int rank, const ModelState& state, const CheckOptions& options);
  void gradients(int rank, const ModelState& state, const at::Generator& generator,
                 const std::function<at::Tensor()>& loss, const CheckOptions& options);
  void draws(int rank, const at::Generator& generator, Draws wanted, const CheckOptions& options);
  void finite(int rank, const ModelState& state, const CheckOptions& options);

  // What is checked at a forward of a DistributedDataParallel that trains, the `model`-th that the rank made on
  // `group`; and when one that has trained, or was never called, is destroyed, for what is left then.
  struct Forward {
    const std::vector<std::string>& ignored;
    bool buffers_are_equal = false;  // they have just been broadcast
    const std::vector<int>& ranks;   // of the world, that have replicas
    std::string model;               // as reports show it: "DDP #1 on group "world""
    std::uint32_t group;             // GroupIdentity::id
  };
  // Once, when its constructor has made the replicas equal: from now on the writes to them are logged for at_end().
  void at_construction(int rank, const torch::nn::Module& module, const Forward& made);
  void at_forward(int rank, const torch::nn::Module& module, const Forward& forward);
  void at_end(int rank, const torch::nn::Module& module, const Forward& last);

  // What a FullyShardedDataParallel that trains compares, whose rows of parameters `shown` has. `is_explained`: ranks
  // write the same tensors alike, so that the first write which differs explains a finding.
  void at_sharded_forward(int rank, const ModelState& shown, const Forward& forward, bool is_explained);
  void draws_at_forward(int rank, const Forward& forward);
  void at_sharded_end(int rank, const ModelState& shown, const Forward& last);

  const AutomaticChecks& automatic() const noexcept { return automatic_; }

  // Ends the world, where nothing has yet. The caller goes on.
  void found(StateFinding finding);

  // Where NaN and Inf come from, as far as somebody looks.
  Origins& origins() noexcept;
  // What all-reduces were given, as far as somebody looks.
  Reductions& reductions() noexcept;
  // Who looks at the operators of `rank`; null: nobody does.
  operators::OperatorWatcher* watcher_of(int rank) noexcept;

  // Once, after a run in which all ranks returned: what ranks have shown that others never came to.
  void judge_what_is_left();
  const std::vector<StateFinding>& findings() const noexcept { return findings_; }
  // A line for each check that the program asked for and to which ranks did not come.
  std::vector<std::string> remarks() const;

 private:
  struct Shown;
  struct Asked;

  void show_replicas(int rank, const ModelState& state, const Asked& asked);
  void show_draws(int rank, const at::Generator& generator, Draws wanted, const Asked& asked);
  template <class Round>
  void settle(const Round& round);
  template <class Rounds>
  void judge_open(Rounds& rounds);

  exec::RankExecutor& executor_;
  const AutomaticChecks automatic_;
  Counts& held_;
  const std::unique_ptr<Shown> shown_;
  std::vector<StateFinding> findings_;
};

// Those of the world that runs on this thread. Null: it has none (real runs), or there is no world.
WorldChecks* world_checks() noexcept;

}  // namespace rehearse::checks
