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

  // Iterations with plain all-reduces before compression begins. At least 2 with error feedback or warm start, because
  // these need the final buckets.
  std::int64_t start_power_sgd_iter = 1000;

  // A gradient of n x m elements is compressed if (n + m) * rank * min_compression_rate < n * m.
  double min_compression_rate = 2;

  bool use_error_feedback = true;  // adds what compression lost to the next gradient
  bool warm_start = true;          // starts each iteration from the Q of the previous one

  // Added to the norms by which columns are divided, in case a column is nearly 0.
  double orthogonalization_epsilon = 0;

  std::uint32_t random_seed = 0;  // for the first Q, and without warm_start for each Q; must be equal on all ranks

  // Multiplies gradients of one shape in one batch.
  bool batch_tensors_with_same_shape = false;
};

// PowerSGD (Vogels, Karimireddy, Jaggi: "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
// Optimization", NeurIPS 2019), as powerSGD_hook() in torch/distributed/algorithms/ddp_comm_hooks: gradient M becomes P
// Q^T with P = orthogonal(mean over ranks of M Q), Q = mean of M^T P. Vectors are sent uncompressed. Draws Q from the
// same random numbers as PyTorch. The results equal PyTorch's bit for bit if ranks are summed in the same
// order, as over gloo (tests/parity); a world sums in order of rank, so rounding differs with three or more ranks. If
// orthogonalization_epsilon is 0, and P has at most two columns or a 16-bit dtype, a column of zeros stays zero; in
// PyTorch it becomes NaN.
//
// Blocking: reduce() waits for the two factors of all ranks, one after the other. (PyTorch's hook chains callbacks
// instead. The hook's collectives have the same order on all ranks only if futures complete at launch, as with NCCL.)
// Memory: (n + m) * rank elements for each matrix. With error feedback, also as much as the gradients take.
class PowerSgd {
 public:
  // Throws c10::ValueError, which names the field, for options that make no sense.
  PowerSgd(c10::intrusive_ptr<c10d::ProcessGroup> group, PowerSgdOptions options);

  // Returns the approximate mean of the bucket's gradients over all ranks, and writes it into the bucket's buffer.
  at::Tensor reduce(c10d::GradBucket& bucket);

  // Numbers of elements since compression began, before and after compression.
  std::int64_t elements_before() const noexcept { return elements_before_; }
  std::int64_t elements_after() const noexcept { return elements_after_; }

 private:
  struct Factors {
    at::Tensor p, q;  // for all matrices of a bucket, one after the other
  };
  struct Split {
    std::vector<at::Tensor> matrices;                // compressed: batch x n x m
    std::vector<at::Tensor> uncompressed;            // views of the bucket's buffer
    std::vector<std::vector<at::Tensor>> originals;  // for each batch that is a copy: the tensors to copy it back to
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
  std::unordered_map<std::size_t, Factors> factors_;    // by bucket index
  std::unordered_map<std::size_t, at::Tensor> errors_;  // by bucket index
  std::int64_t iteration_ = 0;
  std::int64_t elements_before_ = 0;
  std::int64_t elements_after_ = 0;
};

}  // namespace rehearse::parallel
