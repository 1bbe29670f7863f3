// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace torch::nn {
class Module;
}

namespace rehearse {

// The arguments of torch.nn.parallel.DistributedDataParallel, with its names and defaults.
struct DistributedDataParallelOptions {
  // Gradients are reduced in buckets of about this many MiB (a bucket is closed by the parameter that fills
  // it). Not given: 25.
  std::optional<double> bucket_cap_mb = std::nullopt;

  // The first bucket to be reduced is smaller, so that communication starts early. Not given: 1 MiB, and the
  // size of all others when bucket_cap_mb is given, as in PyTorch.
  std::optional<std::int64_t> first_bucket_bytes = std::nullopt;

  // Gradients are views of the buckets: saves one copy of them. See DistributedDataParallel::zero_grad().
  bool gradient_as_bucket_view = false;

  // Buffers follow those of rank 0: at construction and before each forward that trains.
  bool broadcast_buffers = true;

  // Look for parameters that took no part in the outputs, on any rank, instead of waiting for their
  // gradients.
  bool find_unused_parameters = false;

  // At construction, verify that all ranks have the same parameters and take rank 0's values.
  bool init_sync = true;
};

namespace parallel {

// A bucket of gradients, in the order in which buckets are reduced.
struct GradientBucket {
  std::vector<std::string> parameters;  // names, in the order of their places in the bucket
  std::size_t bytes = 0;                // 0 for a sparse gradient that has not been made yet
};

// The part of DistributedDataParallel that does not depend on the module's type. Use that.
class ReducerSession {
 public:
  ReducerSession(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
                 DistributedDataParallelOptions options);
  ReducerSession(const ReducerSession&) = delete;
  ReducerSession& operator=(const ReducerSession&) = delete;
  ~ReducerSession();

  // Blocks for the collectives of bucket rebuilding (second iteration) and of buffers.
  void before_forward();

  // Does after_forward() want the tensors of the output?
  bool wants_outputs() const noexcept;

  // With find_unused_parameters, puts tensors of the same values into `outputs`, through which backward
  // passes to the reducer even for those that the loss leaves out.
  void after_forward(std::vector<at::Tensor>& outputs);

  // Those of the module, each once.
  std::vector<at::Tensor> parameters() const;
  std::vector<GradientBucket> buckets() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallel
}  // namespace rehearse
