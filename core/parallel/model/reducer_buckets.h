// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace rehearse::parallel {

struct ReducerBucket {
  at::Tensor buffer;  // undefined for a sparse bucket, which is made anew in each backward
  std::vector<at::Tensor> parameters;
};

// Reads the reducer's own list, because Reducer::get_grad_buckets() refuses sparse buckets since LibTorch 2.15. The
// list is protected, so a derived class can read it.
inline std::vector<ReducerBucket> buckets_of(const c10d::Reducer& reducer) {
  struct Opened : c10d::Reducer {
    static std::vector<ReducerBucket> read(const Reducer& reducer) {
      std::vector<ReducerBucket> read;
      for (const Bucket& bucket : reducer.*(&Opened::buckets_)) read.push_back({bucket.gradients, bucket.variables});
      return read;
    }
  };
  return Opened::read(reducer);
}

}  // namespace rehearse::parallel
