// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse/graph/split.h>

// Cuts a forward graph where DDP's gradient buckets end. A compiler that runs each piece as one step then lets DDP
// reduce a bucket while the backward of earlier pieces still runs. The algorithm is DDPOptimizer's
// (torch/_dynamo/backends/distributed.py of PyTorch 2.11); docs/SPLITTING.md explains it and the differences.
namespace rehearse::parallel {

// Rules that say which parameters count towards a bucket, for cases in which PyTorch's choice and DDP's buckets differ.
// The default follows PyTorch except for parameters that DDP ignores.
struct CountingRules {
  // Counts a parameter that DDP ignores if its module was inlined into the graph, because the placeholder's fake tensor
  // has lost the mark. Ignored parameters of called modules, and ignored attributes, never count.
  bool ignored_if_inlined = false;
  // True, as in PyTorch: counts a parameter at each use, and an attribute at each fetch. Counts a called module once,
  // at its last call, with all its parameters, even if another module shares them. A full bucket can be cut off if a
  // later node uses any of its values, fetched ones too. So a bucket may contain only fetches. Such a bucket has no
  // piece.
  // False: counts each parameter once, at its first use in the graph, because backward completes its gradient there.
  // A node uses a parameter if it takes the parameter's placeholder, if it takes the fetched attribute in any argument,
  // or if it calls the parameter's module. Attributes that are one tensor count as one parameter. A later use of a
  // fetched value is no reason to cut a bucket off, so each bucket has a piece.
  bool each_use = true;
  // Also counts parameters in keyword arguments, in lists among the arguments, and among the arguments of a called
  // module or of a method called on the result of a function.
  bool nested_arguments = false;

  static CountingRules pytorch() { return {.ignored_if_inlined = true}; }
  // The rules by which DDP itself fills its buckets: each parameter that it reduces counts once.
  static CountingRules ddp() { return {.ignored_if_inlined = false, .each_use = false, .nested_arguments = true}; }
};

struct BucketSplitterOptions {
  std::int64_t bucket_bytes_cap = 25 * 1024 * 1024;   // DDP's bucket_cap_mb
  std::int64_t first_bucket_bytes_cap = 1024 * 1024;  // for the bucket that is reduced first, at the graph's end
  CountingRules rules;
  graph::PartitionOrder order = graph::PartitionOrder::Fx;  // the order in which the pieces are called
  // Puts the items of a list or tuple into the piece of the node that returns it. PyTorch passes the list itself to the
  // next piece.
  bool keep_items_together = false;
  // Caps in bytes for each bucket, from the graph's end on; the last cap holds for all further buckets. If not empty,
  // the list replaces bucket_bytes_cap and first_bucket_bytes_cap. The first cap in the list may be larger than the
  // others.
  std::vector<std::int64_t> bucket_bytes_caps = {};

  // The cap in bytes of bucket #`number`, counted from the graph's end.
  std::int64_t cap_of(std::size_t number) const;
};

// The part of the graph whose parameters fill one of DDP's buckets.
struct ForwardBucket {
  std::int64_t bytes = 0;               // size of the parameters' storages
  std::vector<std::string> parameters;  // in the order in which they were found, from the graph's end
  std::vector<graph::Node*> nodes;      // nodes of the input graph, in its order; without placeholders and output
  // A full bucket cannot be cut off if no later node uses one of its values; then it goes on growing.
  // Nodes added after it was full. If the cap of the bucket at the graph's end is 0, this includes its first node.
  std::int64_t extended_ops = 0;
  std::int64_t bytes_before_extension = 0;  // `bytes` when it was full; meaningless if extended_ops is 0
};

// Returns the buckets in the graph's order; DDP reduces the last one first. There is at least one, which may be empty.
// Nodes belong to `module` and live as long as it does. A cap of 0 cuts wherever possible. Cost: linear in nodes and
// uses. Throws c10::ValueError if a cap is negative, or if first_bucket_bytes_cap is larger than bucket_bytes_cap and
// bucket_bytes_caps is empty. Also throws it for a counted parameter with a symbolic size and unknown storage, or with
// a negative size or storage, and for a parameter or bucket whose bytes exceed 63 bits.
std::vector<ForwardBucket> assign_buckets(const graph::GraphModule& module, const BucketSplitterOptions& options = {});

struct BucketSplit {
  std::vector<ForwardBucket> buckets;
  // One call of a submodule submod_<index> for each bucket, except for those that only fetch attributes (possible with
  // each_use). See graph::split_by() for the order of the calls, and for the names of submodules if submod_<index> is
  // taken. If there is only one bucket, this is the input `module` itself.
  std::shared_ptr<graph::GraphModule> module;
  bool was_split() const noexcept { return buckets.size() > 1; }
  // Says why there are fewer cuts than the caps ask for, or fewer pieces than buckets, and which parameters are in no
  // bucket. Empty if there is nothing to report.
  std::vector<std::string> warnings;
  // In the order of their calls; `id` is the bucket's index. Empty if there is only one bucket.
  std::vector<graph::Partition> pieces;
};

// assign_buckets(), and then the graph in pieces. `module` does not change; the pieces share its tensors and
// submodules. Symbols that a piece needs become inputs of the piece, even if the piece only uses a tensor with a
// symbolic size. Throws what assign_buckets() and graph::split_by() throw, and graph::GraphError if `module` is null.
BucketSplit split_by_buckets(const std::shared_ptr<graph::GraphModule>& module,
                             const BucketSplitterOptions& options = {});

// A table for people: a row per bucket with its bytes, extension and parameters.
std::string bucket_table(const std::vector<ForwardBucket>& buckets);

}  // namespace rehearse::parallel
