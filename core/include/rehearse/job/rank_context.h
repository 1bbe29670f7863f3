// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse/checks/check_options.h>
#include <rehearse/checks/model_state.h>
#include <rehearse/exec/time.h>
#include <rehearse/job/group.h>

namespace rehearse {

// The interface of a run for a rank's body: the rank's number, its groups and store, and functions that report to the
// run. It is the same in every mode.
//
// Each rank has one context. The code that runs the body makes and owns the context. The context is valid while the
// body runs, and only this rank's fibers may use it.
class RankContext {
 public:
  // Names what the rank communicates (a parameter, a bucket, a module) from construction to destruction. Labels nest;
  // the innermost counts. A label is for the calls of the thread that makes it. If two ranks call a collective under
  // different labels, that is a mismatch.
  class Label {
   public:
    Label(RankContext& context, std::string_view name) : scope_(context.begin_label(name)) {}
    Label(const Label&) = delete;
    Label& operator=(const Label&) = delete;

   private:
    const std::shared_ptr<void> scope_;
  };

  virtual ~RankContext() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  // How many times this rank has been restarted (by a fault or by torchrun); 0: the first incarnation. In a simulation,
  // only the files (scratch_folder()) and the store's keys of an earlier incarnation remain. The rank is not a member
  // of groups that were made before its restart, and calls on these groups, group() included, throw CommError. The rank
  // can join new groups, by new_local_group(). torchrun restarts all ranks, with a new group() and a new store.
  virtual int incarnation() const noexcept = 0;

  // The group of all ranks, "world".
  virtual const Group& group() const noexcept = 0;

  // A key-value store that all ranks share. Its get() and wait() block; in a simulation, their timeouts are in virtual
  // time.
  virtual const c10::intrusive_ptr<c10d::Store>& store() const noexcept = 0;

  // Makes a group of some ranks of the world, in the given order. As with torch.distributed.new_group, every rank of
  // the world must call it, members or not, with the same ranks and in the same order relative to other groups. Returns
  // an empty group to ranks that are not members. If each rank is a process, a member waits until all members are
  // connected. Otherwise nobody waits for other ranks, unless their calls differ: then the call waits for the end of
  // the vote on the mismatch. Throws c10::ValueError if `ranks` is empty, if ranks are out of range or repeated, or if
  // another group made by all ranks has that name, whatever its ranks.
  virtual Group new_group(const std::vector<int>& ranks, std::string_view name = {}) = 0;

  // Like new_group(), but only the members call it, independently of other groups: torch.distributed.new_group() with
  // use_local_synchronization. The n-th such call of a rank with these ranks and this name joins the n-th such group,
  // so names may repeat. Throws c10::ValueError if ranks are out of range or repeated, or if the calling rank is not
  // among them.
  virtual Group new_local_group(const std::vector<int>& ranks, std::string_view name = {}) = 0;

  // This rank's default CPU generator, from which at::rand() and module initialisers draw. All ranks start with the
  // same seed, as after torch.manual_seed() in every process.
  virtual at::Generator& generator() const noexcept = 0;

  // The device for this rank's tensors: its GPU if it has one; in a simulation the CPU.
  virtual at::Device device() const noexcept = 0;

  virtual VirtualTime now() const noexcept = 0;

  // A folder for this rank's files: no other rank of the run writes there. A restarted rank finds the files of its
  // previous incarnation. In a simulation, each seed has its own folder, which is empty when the run begins. If the run
  // is OK, the simulation removes the folder at the end; otherwise the report says where it is. A real run never
  // removes it: a later run under the same parent process finds the files. Throws std::filesystem::filesystem_error.
  virtual std::filesystem::path scratch_folder();

  // A folder that all ranks of the run share, as they would a network file system. Otherwise as scratch_folder(). In a
  // real run, the ranks must be processes of one machine.
  virtual std::filesystem::path shared_folder();

  // Takes as long as a computation of that duration. In a simulation, this rank waits until that much virtual time has
  // passed, while other ranks run; in a real run, it sleeps. May be called anywhere in a rank, also in backward hooks
  // and in operators' kernels. Throws std::invalid_argument if the duration is negative, and RankAborted when the world
  // ends. WorldOptions::compute gives operators a duration of their own.
  virtual void compute(VirtualDuration duration) = 0;

  [[nodiscard]] Label label(std::string_view name) { return Label(*this, name); }

  // A T of this rank, made at its first use and destroyed when the rank ends: what a global variable is to a process.
  template <class T>
  T& local() {
    static const char key = 0;
    std::any& slot = local_slot(&key);
    // Through a pointer, because std::any requires copyable types and a T is often a module or holds a lock.
    if (!slot.has_value()) slot = std::make_shared<T>();
    return *std::any_cast<std::shared_ptr<T>&>(slot);
  }

  // A check of the program's own. `what` names the check in the report, which counts how often the check held. If it
  // fails, throws CheckError, and the verdict is check_failed. `detail` says what was found instead.
  void expect(bool holds, std::string_view what, std::string_view detail = {});

  // State checkers (docs/STATE_CHECKS.md). A simulation compares the state of the ranks directly: the calls make no
  // collective, do not wait for other ranks, take no virtual time and draw no numbers. A finding ends the world with
  // the verdict CHECK FAILED: a finding of check_finite() at once, any other finding when the last rank arrives. If
  // a rank does not arrive, check_replicas() and check_draws() compare the others 64 checks later or when the world
  // ends. In real runs check_gradients() and check_finite() check each rank alone, and throw CheckError for a finding;
  // check_saved() works as in simulations; the others, and check_gradients() of a FullyShardedDataParallel, do nothing.
  // Errors: std::invalid_argument for options that make no sense.
  //
  // Checks that all ranks have equal values under each name. `model`: a DistributedDataParallel or
  // FullyShardedDataParallel, a module, or named tensors.
  void check_replicas(const checks::ModelState& model, const checks::CheckOptions& options = {});

  // Checks that the gradients of `model` equal those of one process. `loss_of_all` must compute the loss of the whole
  // batch with the module itself, without collectives. Call it after backward and before the optimizer's step. The last
  // rank to arrive runs the function; then that rank's buffers and generator are restored.
  void check_gradients(const checks::ModelState& model, const std::function<at::Tensor()>& loss_of_all,
                       const checks::CheckOptions& options = {});

  // Checks that the ranks' last step has changed `model` as `step_of_one` changes `reference`, which has the same names
  // and, before the first check, the values from before the step. Call it after the optimizer's step. The lowest rank
  // runs `step_of_one`, which trains `reference` with the whole batch, without collectives. Then that rank's generator
  // is restored, and before the next check `reference` gets the ranks' values. Bounds: docs/STATE_CHECKS.md.
  void check_step(const checks::ModelState& model, const checks::ModelState& reference,
                  const std::function<void()>& step_of_one, const checks::CheckOptions& options = {});

  // Checks that the default generators are in the same state on all ranks, or that they draw different numbers on each.
  void check_draws(checks::Draws wanted = checks::Draws::same, const checks::CheckOptions& options = {});

  // Checks that this rank's `model` and its gradients contain no NaN and no Inf. For buffers see CheckOptions::buffers.
  void check_finite(const checks::ModelState& model, const checks::CheckOptions& options = {});

  // A text about what this rank saves, to keep beside the checkpoint: the hash or the number of each tensor. `parts`:
  // models, optimizers, and tensors by name, such as the state of a generator and the place in the data.
  std::string saved_record(const std::vector<checks::ModelState>& parts) const;

  // Checks, also in real runs, that this rank has loaded what it had saved. `records`: of all ranks that saved. If they
  // were as many as now, the rank's parts must equal its own record. Otherwise a tensor must equal what all of them
  // saved under its name; a remark names those that differed between them or had other rows. Throws CheckError if a
  // tensor differs or is missing on one side, or if there is no record of a rank; std::invalid_argument for other
  // texts.
  void check_saved(const std::vector<std::string>& records, const std::vector<checks::ModelState>& parts);

  // Records a result of this rank, such as a loss or its parameters, for comparing runs. Keeps a copy on the CPU.
  // `validate` compares results of the same name and rank; the n-th result of a name is compared with the n-th result
  // of that name in the other run.
  void result(std::string_view name, const at::Tensor& value);

  // Shows progress to people, for rank 0 only; it never influences the run. `done` of `total` steps.
  virtual void progress(std::int64_t done, std::int64_t total, std::string_view text) = 0;

 protected:
  // The label ends when what this returns is destroyed.
  virtual std::shared_ptr<void> begin_label(std::string_view name) = 0;
  virtual void count_check(std::string_view what) = 0;
  virtual void keep_result(std::string_view name, at::Tensor value) = 0;
  virtual std::any& local_slot(const void* key) = 0;
};

// RankContext::expect() did not hold or, in a real run, a state checker found something.
class CheckError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse
