// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

// The state checkers of a world whose ranks are all in this process. Keeps what ranks have shown of their state; the
// last rank of a comparison to arrive runs the comparison. No rank waits, no collective is made, no time passes, and no
// number is drawn. A finding ends the world. Programs use RankContext::check_replicas() and its siblings.
//
// Fibers: call the functions that check a rank's state in that rank's fiber, the others anywhere on the executor's
// thread. None blocks. The constructor's arguments must outlive the object.
class WorldChecks {
 public:
  using Counts = std::map<std::string, std::uint64_t>;
  using LabelOf = std::function<std::string(int rank)>;

  // `held`: counts how often each check found nothing.
  WorldChecks(exec::RankExecutor& executor, AutomaticChecks automatic, Counts& held, const LabelOf& label_of);
  WorldChecks(const WorldChecks&) = delete;
  WorldChecks& operator=(const WorldChecks&) = delete;
  ~WorldChecks();

  // See RankContext. They throw std::invalid_argument for CheckOptions that make no sense.
  void replicas(int rank, const ModelState& state, const CheckOptions& options);
  void gradients(int rank, const ModelState& state, const at::Generator& generator,
                 const std::function<at::Tensor()>& loss, const CheckOptions& options);
  void step(int rank, const ModelState& model, const ModelState& one, const at::Generator& generator,
            const std::function<void()>& step_of_one, const CheckOptions& options);
  void draws(int rank, const at::Generator& generator, Draws wanted, const CheckOptions& options);
  void finite(int rank, const ModelState& state, const CheckOptions& options);

  // One forward of a DistributedDataParallel or FullyShardedDataParallel in training mode. Also describes the model
  // when it is constructed, and when it is destroyed, even if it was never called.
  struct Forward {
    const std::vector<std::string>& ignored;
    bool buffers_are_equal = false;  // they should be: they have just been broadcast, or no forward has trained yet
    const std::vector<int>& ranks;   // the ranks of the world that have replicas
    std::string model;               // its name in reports: "DDP #1 on group "world""
    std::uint32_t group;             // GroupIdentity::id
    bool was_reduced = false;        // the Reducer has all-reduced all gradients since the previous forward
  };
  // Call it once, after the constructor of a DistributedDataParallel has made the replicas equal. If operators are
  // watched (watcher_of()), the watcher logs writes to the parameters from then on, to explain the finding of the next
  // comparison.
  void at_construction(int rank, const torch::nn::Module& module, const Forward& made);
  void at_forward(int rank, const torch::nn::Module& module, const Forward& forward);
  void at_end(int rank, const torch::nn::Module& module, const Forward& last);

  // The comparison at a forward of a FullyShardedDataParallel in training mode. `shown`: this rank's shards, or the
  // rows of all ranks as this rank has used them. `is_explained`: true if ranks should make the same writes, so that
  // the first write that differs explains a finding.
  void at_sharded_forward(int rank, const ModelState& shown, const Forward& forward, bool is_explained);
  void draws_at_forward(int rank, const Forward& forward);
  void at_sharded_end(int rank, const ModelState& shown, const Forward& last);

  const AutomaticChecks& automatic() const noexcept { return automatic_; }

  // Adds the finding and ends the world. Ignores the finding if the world is already ending. Returns to the caller.
  void found(StateFinding finding);

  Origins& origins() noexcept;
  Reductions& reductions() noexcept;
  // Null: no operators are watched.
  operators::OperatorWatcher* watcher_of(int rank) noexcept;

  // Call it once, after a run in which all ranks returned: judges checks to which some ranks never came.
  void compare_what_is_left();
  const std::vector<StateFinding>& findings() const noexcept { return findings_; }
  // Lines about replicas that differ and may do so on purpose, and about the checks of the program to which some ranks
  // did not come in time; see MissedRounds::lines().
  std::vector<std::string> remarks() const;

 private:
  struct Shown;
  struct Asked;

  void show_replicas(int rank, const ModelState& state, const Asked& asked);
  void show_draws(int rank, const at::Generator& generator, Draws wanted, const Asked& asked);
  template <class Rounds, class Round>
  void settle_due(Rounds& rounds, Round& round);
  template <class Round>
  std::optional<StateFinding> judge(const Round& round);
  template <class Rounds>
  void compare_open(Rounds& rounds);

  exec::RankExecutor& executor_;
  const AutomaticChecks automatic_;
  Counts& held_;
  const std::unique_ptr<Shown> shown_;
  std::vector<StateFinding> findings_;
};

// The checks of the world that runs on this thread. Null in real runs and outside of worlds.
WorldChecks* world_checks() noexcept;

}  // namespace rehearse::checks
