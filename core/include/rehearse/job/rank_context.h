// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
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

// What a rank's body is given: who it is, its groups and store, and how to tell the run about itself. The same
// whatever runs the job.
//
// One for each rank, made and owned by the runner, valid while the body runs; used on that rank's fibers only.
class RankContext {
 public:
  // Names what the rank communicates (a parameter, a bucket, a module) while it lives; labels nest, the innermost
  // counts. Two ranks that meet in a collective under different labels are a mismatch.
  class Label {
   public:
    Label(RankContext& context, std::string_view name);
    Label(const Label&) = delete;
    Label& operator=(const Label&) = delete;
    ~Label();

   private:
    RankContext& context_;
  };

  virtual ~RankContext() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  // How often this rank has begun again (a fault's restart, torchrun's); 0: its first life. Nothing of a former life is
  // there: it is a member of no group that was made in it, and calls on one, group() too, throw CommError. It takes
  // part in groups that are made anew, by new_local_group().
  virtual int incarnation() const noexcept = 0;

  // The group of all ranks, "world".
  virtual const Group& group() const noexcept = 0;

  // A key-value store shared by all ranks. Its get() and wait() block, with timeouts in virtual time.
  virtual const c10::intrusive_ptr<c10d::Store>& store() const noexcept = 0;

  // A group of some ranks (of the world), in that order. Every rank of the world calls it, members or not, with the
  // same ranks and in the same order among groups, as with torch.distributed.new_group. Empty on non-members.
  // Does not wait for the other ranks, unless their calls differ: then until they have taken a side. Throws
  // c10::ValueError if another group that all ranks have made has that name, whatever its ranks are.
  virtual Group new_group(const std::vector<int>& ranks, std::string_view name = {}) = 0;

  // As new_group(), but called by the members alone, whatever groups else there are: torch.distributed.new_group() with
  // use_local_synchronization. A rank's n-th such call with these ranks and this name takes the n-th such group, so a
  // name may be there more than once. Throws c10::ValueError when the calling rank is not among them.
  virtual Group new_local_group(const std::vector<int>& ranks, std::string_view name = {}) = 0;

  // This rank's default CPU generator: the one that at::rand() and module initialisers draw from. All ranks start
  // with the same seed, as after torch.manual_seed() in every process.
  virtual at::Generator& generator() const noexcept = 0;

  // Where this rank's tensors belong: its GPU where it has one, the CPU in a simulation.
  virtual at::Device device() const noexcept = 0;

  virtual VirtualTime now() const noexcept = 0;

  // A folder for files of this rank alone, in which no other rank and no other seed writes. In a simulation it is empty
  // when a run begins, a rank that begins again finds what it wrote before, and the folders of a run that is not OK are
  // kept: the report says where. In a real run nobody removes it. Throws std::filesystem::filesystem_error.
  virtual std::filesystem::path scratch_folder();

  // The rank computes for so long: its virtual time moves on, and other ranks run meanwhile. Anywhere in a rank, also
  // in backward hooks and in operators' kernels. Throws std::invalid_argument below 0, and RankAborted when the world
  // ends. What operators take by themselves: WorldOptions::compute.
  virtual void compute(VirtualDuration duration) = 0;

  [[nodiscard]] Label label(std::string_view name) { return Label(*this, name); }

  // One T for each rank, made on first use, gone when its rank ends: what a global variable is to a process.
  template <class T>
  T& local() {
    static const char key = 0;
    std::any& slot = local_slot(&key);
    // Through a pointer, because std::any wants copyable types and a T is often a module or holds a lock.
    if (!slot.has_value()) slot = std::make_shared<T>();
    return *std::any_cast<std::shared_ptr<T>&>(slot);
  }

  // A check of the program's own. `what` names it in the report, which counts how often it held; when it does not
  // hold, throws CheckError and the verdict is check_failed. `detail` says what was found.
  void expect(bool holds, std::string_view what, std::string_view detail = {});

  // State checkers (docs/STATE_CHECKS.md). In simulation what ranks have is compared directly: no collective is made,
  // none of the calls waits for another rank, takes virtual time or draws a number. A finding is the verdict CHECK
  // FAILED and ends the world, at the rank that comes last. In real runs check_replicas() and check_draws() do nothing,
  // and the others throw CheckError. The n-th check of a name is compared with the n-th of the other ranks. Errors:
  // std::invalid_argument for options that make no sense.
  //
  // The same values under each name on all ranks. `model`: a DistributedDataParallel, a module, named tensors.
  void check_replicas(const checks::ModelState& model, const checks::CheckOptions& options = {});

  // The gradients that `model` has are those of one process: of `loss_of_all`, which computes the loss of the whole
  // batch with the module itself, without any collective. After backward, before the optimizer's step. The function
  // runs on the rank that comes last; buffers and generator are then put back.
  void check_gradients(const checks::ModelState& model, const std::function<at::Tensor()>& loss_of_all,
                       const checks::CheckOptions& options = {});

  // Default generators stand at the same place on all ranks, or draw different numbers on each.
  void check_draws(checks::Draws wanted = checks::Draws::same, const checks::CheckOptions& options = {});

  // No NaN and no Inf in this rank's `model` and its gradients.
  void check_finite(const checks::ModelState& model, const checks::CheckOptions& options = {});

  // What this rank has come to: a loss, its parameters. A copy is kept, on the CPU, for what compares runs: `validate`
  // sets those of the same name and rank side by side. The n-th result of a name is another one than the first.
  void result(std::string_view name, const at::Tensor& value);

  // For people to watch; rank 0 only is shown. Never part of a decision. `done` of `total` steps.
  virtual void progress(std::int64_t done, std::int64_t total, std::string_view text) = 0;

 protected:
  virtual void push_label(std::string_view name) = 0;
  virtual void pop_label() noexcept = 0;
  virtual void count_check(std::string_view what) = 0;
  virtual void keep_result(std::string_view name, at::Tensor value) = 0;
  virtual std::any& local_slot(const void* key) = 0;
};

// RankContext::expect() did not hold.
class CheckError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse
