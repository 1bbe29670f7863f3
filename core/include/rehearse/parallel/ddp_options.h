// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <rehearse/parallel/active_ddp.h>

namespace rehearse {

// PyTorch's _MixedPrecision. What is not given stays as it is. The full values of parameters are kept beside
// those of param_dtype, which take their places from the start of forward until the bucket of gradients that
// they are in has been reduced; in a forward without grad mode until its end, and inside no_sync() on into
// the next iteration.
struct MixedPrecision {
  // Of parameters, and of floating-point tensors among forward()'s arguments, hence of what is computed.
  // Gradients, in full precision in the end, are then no views of buckets, whatever gradient_as_bucket_view
  // says. (PyTorch leaves views behind that no bucket has, and reduces old gradients from the third
  // iteration.)
  std::optional<at::ScalarType> param_dtype = std::nullopt;

  // In which gradients are added up. Not given: param_dtype. (PyTorch reduces memory that nobody has written
  // in the first iteration.)
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;

  // Of all buffers, counters too, from construction on.
  std::optional<at::ScalarType> buffer_dtype = std::nullopt;
};

// The arguments of torch.nn.parallel.DistributedDataParallel, with its names and defaults.
struct DistributedDataParallelOptions {
  // Gradients are reduced in buckets of about this many MiB (a bucket is closed by the parameter that fills
  // it). Not given: 25.
  std::optional<double> bucket_cap_mb = std::nullopt;

  // The first bucket to be reduced is smaller, so that communication starts early. Not given: 1 MiB, and the
  // size of all others when bucket_cap_mb is given, as in PyTorch.
  std::optional<std::int64_t> first_bucket_bytes = std::nullopt;

  // MiB of each bucket, the last one for all that follow; takes the place of the two above. In the first
  // iteration the list begins at the first parameter, which is reduced last, and later at the first gradient
  // to arrive, as in PyTorch.
  std::vector<double> bucket_cap_mb_list = {};

  // Gradients are views of the buckets: saves one copy of them. See DistributedDataParallel::zero_grad().
  bool gradient_as_bucket_view = false;

  // Buffers follow those of rank 0: at construction and before each forward that trains.
  bool broadcast_buffers = true;

  // Look for parameters that took no part in the outputs, on any rank, instead of waiting for their
  // gradients.
  bool find_unused_parameters = false;

  // With find_unused_parameters: a bucket of which this rank used nothing is not reduced at all. The ranks
  // must agree on what is unused, else their collectives do not match.
  bool skip_all_reduce_unused_params = false;

  // The same parameters are used, as often and in the same order, in every iteration. The first backward,
  // which must reduce (not inside no_sync()), learns them: unused parameters and modules that run several
  // times then cost nothing. Takes the place of find_unused_parameters.
  bool static_graph = false;

  // Names of parameters and buffers ("encoder.0.weight") that DDP leaves alone: neither verified, nor
  // broadcast, nor reduced. PyTorch's _set_params_and_buffers_to_ignore_for_model(), which it forgets to
  // honour for parameters of the outermost module itself.
  std::vector<std::string> parameters_to_ignore = {};

  // Parameters, buffers and reductions in other dtypes. Takes the place of a communication hook, and does not
  // go with find_unused_parameters: the reducer does not find lowered parameters in the graph. (PyTorch fails
  // then in the first backward, as it does without param_dtype, with shared parameters, and after no_sync()
  // or a first forward without grad mode, all of which work here.)
  std::optional<MixedPrecision> mixed_precision = std::nullopt;

  // At construction, verify that all ranks have the same parameters and take rank 0's values.
  bool init_sync = true;
};

namespace parallel {

// The arguments of DistributedDataParallel.join() of PyTorch.
struct JoinOptions {
  // Divide gradients by the size of the group, or by the number of ranks that still have inputs.
  bool divide_by_initial_world_size = true;

  // Once a rank has run out of inputs, throw c10::Error on all ranks, instead of going on with the others.
  bool throw_on_early_termination = false;
};

// What compile() cuts by. As PyTorch's DDPOptimizer takes it: bucket_cap_mb, 25 MiB where it is not given, and 1 MiB
// for the first bucket. first_bucket_bytes and bucket_cap_mb_list, which that one does not hear of, take their places.
DdpBuckets buckets_of(const DistributedDataParallelOptions& options);

// A bucket of gradients, in the order in which buckets are reduced.
struct GradientBucket {
  std::vector<std::string> parameters;  // names, in the order of their places in the bucket
  std::size_t bytes = 0;                // 0 for a sparse gradient that has not been made yet
};

}  // namespace parallel
}  // namespace rehearse
