// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <torch/optim/optimizer.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse/elastic/run.h>

namespace torch::nn {
class Module;
}

namespace rehearse::elastic {

// The state from which a job resumes after it has lost ranks: a module's parameters and buffers, its optimizer's state,
// and the number of steps done, as torch::save() writes them. Kept in a store: by default the job's own, which lives as
// long as the job; or another one that all ranks reach, such as a c10d::FileStore.
//
// Saving is atomic: if a rank is lost while it saves, the previous checkpoint stays. Rounds overlap if a rank has not
// yet noticed that its round is over; then the checkpoint of the later round counts.
//
// Ownership: refers to round, module and optimizer. Blocking: load(). Errors: c10::Error if the checkpoint belongs to
// another module or optimizer; the errors of the group and of the store.
class Checkpoint {
 public:
  Checkpoint(Round& round, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
             c10::intrusive_ptr<c10d::Store> store = {});

  // Restores module and optimizer from the last checkpoint and returns its number of steps. Returns 0 and changes
  // nothing if there is no checkpoint. All ranks of the round must call it, before they make a DistributedDataParallel.
  // The group's first rank reads the checkpoint from the store and broadcasts it, so a late rank of an earlier round
  // may save meanwhile.
  std::int64_t load();

  // All ranks may call it; only the group's first rank saves. The ranks need no barrier before: the first rank's
  // parameters are final as soon as its own optimizer step is done.
  void save(std::int64_t steps_done);

 private:
  Round& round_;
  torch::nn::Module& module_;
  torch::optim::Optimizer& optimizer_;
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace rehearse::elastic
