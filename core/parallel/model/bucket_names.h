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

// Names the contents of the reducer's dense buckets on the group: "DDP bucket 0 of 2: head.weight, head.bias"; for a
// second model on the group "DDP #2 bucket 0 of 2: ...". Reports of the all-reduces then name parameters, and buckets
// of different parameters or models do not match each other. Does nothing on groups that are not Rehearse's. The
// destructor removes the names.
class BucketNames {
 public:
  explicit BucketNames(const c10d::ProcessGroup& group);
  BucketNames(const BucketNames&) = delete;
  BucketNames& operator=(const BucketNames&) = delete;
  ~BucketNames() { forget(); }

  // Call it after the reducer has made its buckets, and each time it has made new ones.
  void set(const c10d::Reducer& reducer, const ReducedParameters& parameters);

  // `DDP #1 on group "world"`.
  std::string model_text() const;

 private:
  void forget() noexcept;

  c10::intrusive_ptr<c10d::Backend> backend_;  // null: another kind of group
  int model_ = 0;                              // the model's number on the group, from 1
  std::vector<const c10::TensorImpl*> named_;
};

}  // namespace rehearse::parallel
