// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/reducer_factory.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace rehearse::parallel {
namespace {

std::int64_t bytes_of(double mebibytes) { return static_cast<std::int64_t>(mebibytes * 1024 * 1024); }

// The caps of DDP's buckets in bytes: from bucket_cap_mb_list if given, otherwise from bucket_cap_mb and
// first_bucket_bytes.
struct BucketLimits {
  std::int64_t first = c10d::kDefaultFirstBucketBytes;
  std::int64_t cap = c10d::kDefaultBucketBytesCap;
  std::vector<std::int64_t> list;

  explicit BucketLimits(const DistributedDataParallelOptions& options) {
    for (const double limit : options.bucket_cap_mb_list) {
      list.push_back(bytes_of(limit));
      TORCH_CHECK_VALUE(list.back() > 0,
                        "DistributedDataParallel: buckets must hold at least one byte, but "
                        "bucket_cap_mb_list has a limit of ",
                        limit, " MiB.");
    }
    if (options.bucket_cap_mb) cap = first = bytes_of(*options.bucket_cap_mb);
    if (options.first_bucket_bytes) first = *options.first_bucket_bytes;
    if (!list.empty()) cap = first = *std::ranges::max_element(list);
    TORCH_CHECK_VALUE(cap > 0 && first > 0,
                      "DistributedDataParallel: buckets must hold at least one byte, but "
                      "bucket_cap_mb gives ",
                      cap, " and first_bucket_bytes ", first, ".");
  }
};

// Assigns parameters to the buckets of the first iteration. Buckets are in the order of reduction. Gradients are
// expected in the reverse order of use, so the bucket of the last parameters is first. If the buckets will be rebuilt
// from the order observed in the first iteration, all dense gradients of one dtype and device share a bucket until
// then, unless there is a bucket_cap_mb_list.
std::vector<std::vector<std::size_t>> initial_buckets(const ReducedParameters& parameters, const BucketLimits& limits,
                                                      bool rebuilds) {
  std::vector<std::size_t> sizes = {std::numeric_limits<std::size_t>::max()};
  if (!rebuilds) sizes = {static_cast<std::size_t>(limits.first), static_cast<std::size_t>(limits.cap)};
  if (!limits.list.empty()) sizes.assign(limits.list.begin(), limits.list.end());
  auto buckets =
      std::get<0>(c10d::compute_bucket_assignment_by_size(parameters.tensors, sizes, parameters.expect_sparse));
  std::ranges::reverse(buckets);
  return buckets;
}

}  // namespace

std::shared_ptr<c10d::Reducer> make_reducer(const ReducedParameters& parameters,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                            const DistributedDataParallelOptions& options) {
  const BucketLimits limits(options);
  const bool rebuilds = options.static_graph || !options.find_unused_parameters;
  const bool lowered = options.mixed_precision && options.mixed_precision->param_dtype;
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < parameters.names.size(); ++i) names.emplace(i, parameters.names[i]);
  const auto buckets = initial_buckets(parameters, limits, rebuilds);
  auto reducer = std::make_shared<c10d::Reducer>(
      parameters.tensors, buckets, group, parameters.expect_sparse, limits.cap, options.find_unused_parameters,
      options.gradient_as_bucket_view && !lowered, std::move(names), limits.first,
      options.skip_all_reduce_unused_params, /*use_python_reducer=*/false, limits.list);
  if (options.static_graph) reducer->set_static_graph();
  if (lowered) {
    reducer->set_mixed_precision_param_dtype(*options.mixed_precision->param_dtype);
    // set_mixed_precision_param_dtype() gives the buckets new memory that no gradient reaches, because the views refer
    // to the old memory. PyTorch leaves it so, and reduces uninitialised memory in the first iteration.
    reducer->initialize_buckets(buckets);
  }
  return reducer;
}

}  // namespace rehearse::parallel
