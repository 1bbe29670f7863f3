// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <rehearse/parallel/active_ddp.h>

namespace rehearse {

// PyTorch's _MixedPrecision. A dtype that is nullopt does not change. The full-precision values of parameters are kept.
// When a forward starts, values of param_dtype take their place. The full-precision values return when the parameter's
// bucket of gradients has been reduced; those of frozen parameters return at the end of that backward. After a forward
// without grad mode they return at the end of the forward, unless an earlier forward still waits for its backward.
// Inside no_sync() they do not return before the next iteration.
struct MixedPrecision {
  // For parameters and for floating-point tensors among forward()'s arguments, and therefore for the computation.
  // Gradients end up in full precision. They are never views of buckets, whatever gradient_as_bucket_view says. (In
  // PyTorch, gradients remain views of memory that is no bucket's, and old gradients are reduced from the third
  // iteration on.)
  std::optional<at::ScalarType> param_dtype = std::nullopt;

  // For the reduction of gradients. nullopt: param_dtype. (PyTorch reduces uninitialised memory in the first
  // iteration.)
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;

  // For every buffer, integer counters too, starting at construction.
  std::optional<at::ScalarType> buffer_dtype = std::nullopt;
};

// The arguments of torch.nn.parallel.DistributedDataParallel, with its names and defaults.
struct DistributedDataParallelOptions {
  // Gradients are reduced in buckets of about this many MiB: the parameter that reaches the cap closes the bucket.
  // nullopt: 25.
  std::optional<double> bucket_cap_mb = std::nullopt;

  // The cap of the bucket that is reduced first. A small cap lets communication start early. nullopt: 1 MiB, or
  // bucket_cap_mb if that is given, as in PyTorch. With find_unused_parameters, and without static_graph, the buckets
  // of the first iteration stay. Then this is the cap of the bucket that is reduced last, as in PyTorch.
  std::optional<std::int64_t> first_bucket_bytes = std::nullopt;

  // Caps in MiB for each bucket; the last cap holds for all further buckets. If not empty, the list replaces the two
  // caps above. In the first iteration the list begins at the first parameter, which is reduced last; later it begins
  // at the first gradient to arrive, as in PyTorch. With find_unused_parameters, and without static_graph, the buckets
  // of the first iteration stay.
  std::vector<double> bucket_cap_mb_list = {};

  // Makes gradients views of the buckets, which saves one copy of them. See DistributedDataParallel::zero_grad().
  bool gradient_as_bucket_view = false;

  // Copies rank 0's buffers to all ranks, at construction (with init_sync) and before forwards. The comment of
  // DistributedDataParallel names the forwards that are left out.
  bool broadcast_buffers = true;

  // Finds the parameters that took no part in this rank's outputs, instead of waiting for their gradients.
  bool find_unused_parameters = false;

  // With find_unused_parameters: does not reduce a bucket if this rank used none of its parameters. All ranks must
  // leave the same buckets unused, or their collectives do not match.
  bool skip_all_reduce_unused_params = false;

  // Promises that every iteration uses the same parameters, equally often and in the same order. The first backward
  // learns them and must reduce (not inside no_sync()). After that, unused parameters and modules that run several
  // times cost nothing. Replaces find_unused_parameters.
  bool static_graph = false;

  // Names of parameters and buffers ("encoder.0.weight") that are neither verified, nor broadcast, nor reduced.
  // PyTorch's _set_params_and_buffers_to_ignore_for_model(), which PyTorch does not apply to parameters of the
  // outermost module itself.
  std::vector<std::string> parameters_to_ignore = {};

  // Other dtypes for parameters, buffers and reductions. Excludes a communication hook. Also excludes
  // find_unused_parameters without static_graph, because the reducer cannot find the parameters in the autograd graph
  // while values of another dtype take their place.
  // (PyTorch then fails in the first backward. It also fails without param_dtype, with shared parameters, and after
  // no_sync() or a first forward without grad mode; these work here.)
  std::optional<MixedPrecision> mixed_precision = std::nullopt;

  // At construction, verifies that all ranks have the same parameters, and takes rank 0's values.
  bool init_sync = true;
};

namespace parallel {

// The arguments of DistributedDataParallel.join() of PyTorch.
struct JoinOptions {
  // Divides gradients by the size of the group; if false, by the number of ranks that still have inputs.
  bool divide_by_initial_world_size = true;

  // When a rank has run out of inputs, throws c10::Error on all ranks. If false, the other ranks go on.
  bool throw_on_early_termination = false;
};

// The caps by which compile() cuts. As in PyTorch's DDPOptimizer: bucket_cap_mb (25 MiB if not given), and 1 MiB for
// the first bucket. If given, first_bucket_bytes replaces the cap of the first bucket, and bucket_cap_mb_list replaces
// all caps. DDPOptimizer ignores these two options.
DdpBuckets buckets_of(const DistributedDataParallelOptions& options);

// A bucket of gradients. Lists of buckets are in the order of reduction.
struct GradientBucket {
  std::vector<std::string> parameters;  // names, in the order of the bucket's contents
  std::size_t bytes = 0;                // 0 for a sparse gradient that does not exist yet
};

}  // namespace parallel
}  // namespace rehearse
