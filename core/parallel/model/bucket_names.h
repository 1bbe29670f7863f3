// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <c10/core/TensorImpl.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// Tells the group what the reducer's buckets hold ("DDP bucket 0 of 2: head.weight, head.bias"; of a second model on
// the group "DDP #2 bucket 0 of 2: ..."), so that a report of their all-reduces names parameters, and buckets of
// different parameters or models do not pass for the same. Does nothing on groups that are not Rehearse's. Forgets the
// names when destroyed.
class BucketNames {
 public:
  explicit BucketNames(const c10d::ProcessGroup& group);
  BucketNames(const BucketNames&) = delete;
  BucketNames& operator=(const BucketNames&) = delete;
  ~BucketNames() { forget(); }

  // After the reducer has made its buckets, and each time that it has made new ones.
  void set(const c10d::Reducer& reducer, const ReducedParameters& parameters);

  // `DDP #1 on group "world"`.
  std::string model_text() const;

 private:
  void forget() noexcept;

  c10::intrusive_ptr<c10d::Backend> backend_;  // null: another kind of group
  int model_ = 0;                              // its number on the group, from 1
  std::vector<const c10::TensorImpl*> named_;
};

}  // namespace rehearse::parallel
