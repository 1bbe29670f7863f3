// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

namespace rehearse::parallel {

// The arguments of PyTorch's PowerSGDState, with its names and defaults.
struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;

  // Iterations with plain all-reduces. At least 2 with error feedback or warm start, which need the final
  // buckets.
  std::int64_t start_power_sgd_iter = 1000;

  // A gradient of n x m elements is compressed when (n + m) * rank * min_compression_rate < n * m.
  double min_compression_rate = 2;

  bool use_error_feedback = true;  // what compression lost is added to the next gradient
  bool warm_start = true;          // the next iteration starts from the Q that this one found

  // Added to norms that columns are divided by, against columns that are nearly 0.
  double orthogonalization_epsilon = 0;

  std::uint32_t random_seed = 0;  // of the first Q: must be equal on all ranks

  // Gradients of one shape in one batched multiplication.
  bool batch_tensors_with_same_shape = false;
};

// PowerSGD (Vogels, Karimireddy, Jaggi: "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
// Optimization", NeurIPS 2019), as powerSGD_hook() of torch/distributed/algorithms/ddp_comm_hooks has it:
// gradient M becomes P Q^T with P = orthogonal(mean over ranks of M Q), Q = mean of M^T P. Vectors travel as
// they are. It draws the first Q from the numbers that PyTorch draws, and gives PyTorch's values: to the bit
// where ranks are added up in the same order, as over gloo (tests/parity); a world adds in order of rank, which
// rounds otherwise from three ranks on. Other than there, a column of zeros stays zero with
// orthogonalization_epsilon = 0, where PyTorch's becomes NaN.
//
// Blocking: reduce() blocks until all ranks' factors are there, one after the other; PyTorch's hook chains
// callbacks, whose collectives meet in the same order on all ranks only where futures complete at launch
// (NCCL). Memory: with error feedback as much as the gradients; (n + m) * rank for each matrix.
class PowerSgd {
 public:
  // Throws c10::ValueError for options that make no sense, naming the field.
  PowerSgd(c10::intrusive_ptr<c10d::ProcessGroup> group, PowerSgdOptions options);

  // The mean gradient of the bucket over all ranks, approximated; it is in the bucket's buffer too.
  at::Tensor reduce(c10d::GradBucket& bucket);

  // Elements since the start of PowerSGD, before and after compression.
  std::int64_t elements_before() const noexcept { return elements_before_; }
  std::int64_t elements_after() const noexcept { return elements_after_; }

 private:
  struct Factors {
    at::Tensor p, q;  // of all matrices of a bucket, each one after the other
  };
  struct Split {
    std::vector<at::Tensor> matrices;                // compressed: batch x n x m
    std::vector<at::Tensor> uncompressed;            // views of the buffer
    std::vector<std::vector<at::Tensor>> originals;  // of each batch that is a copy: where it goes back
  };

  std::int64_t rank_of(const at::Tensor& batch) const;
  Split split(const std::vector<at::Tensor>& gradients);
  void all_reduce(at::Tensor& tensor) const;
  void reduce_uncompressed(const std::vector<at::Tensor>& tensors) const;
  bool allocate(std::size_t bucket, const Split& split, const at::Tensor& buffer);
  void compress(Factors& factors, const Split& split, bool draw);
  void orthogonalize(at::Tensor matrices) const;
  void draw_normal(std::vector<at::Tensor>& qs);
  void finish(const c10d::GradBucket& bucket);

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  PowerSgdOptions options_;
  std::mt19937 seeds_;
  std::unordered_map<std::size_t, Factors> factors_;    // by index of bucket
  std::unordered_map<std::size_t, at::Tensor> errors_;  // by index of bucket
  std::int64_t iteration_ = 0;
  std::int64_t elements_before_ = 0;
  std::int64_t elements_after_ = 0;
};

}  // namespace rehearse::parallel
