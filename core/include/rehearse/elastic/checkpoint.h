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

// What a job takes up from when ranks have been lost: a module's parameters and buffers, its optimizer's state, and how
// many steps are behind them, as torch::save() writes them. Kept in a store: the job's own, which lives as long as the
// job; or another one, such as a c10d::FileStore, that all ranks reach.
//
// Complete or not there: a rank that is lost while it saves leaves the checkpoint before. Of rounds that overlap,
// because a rank has not yet noticed that its own is over, the later one counts.
//
// Ownership: refers to round, module and optimizer. Blocking: load(). Errors: c10::Error where what is kept is of
// another module or optimizer; those of the group and of the store.
class Checkpoint {
 public:
  Checkpoint(Round& round, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
             c10::intrusive_ptr<c10d::Store> store = {});

  // The steps behind the last checkpoint, which module and optimizer then are as; 0: there is none, and both stay. All
  // ranks of the round call it: the group's first rank says which one is the last, by a broadcast. Before
  // DistributedDataParallel is made.
  std::int64_t load();

  // All ranks may call it; the group's first one saves. Its own parameters are right as soon as its own step is done.
  void save(std::int64_t steps_done);

 private:
  Round& round_;
  torch::nn::Module& module_;
  torch::optim::Optimizer& optimizer_;
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace rehearse::elastic
