// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse/graph/split.h>

// Cuts a forward graph where DDP's gradient buckets end, so that a compiler that runs each piece as one step lets DDP
// reduce a bucket while the backward of earlier pieces still runs. The algorithm is DDPOptimizer's
// (torch/_dynamo/backends/distributed.py of PyTorch 2.11); docs/SPLITTING.md explains it and the differences.
namespace rehearse::parallel {

// What is counted towards a bucket where PyTorch's choice and DDP's buckets differ. The default follows PyTorch but
// for parameters that DDP ignores.
struct CountingRules {
  // Counts a parameter that DDP was told to ignore when its module was inlined into the graph: the placeholder's fake
  // tensor has lost the mark. Parameters of called modules and attributes are skipped in any case.
  bool ignored_if_inlined = false;
  // PyTorch's way: counts a parameter each time it is used, an attribute each time it is fetched, and a called module
  // once, at its last call, with all its parameters, also where another module has or shares them. A fetch passes for a
  // value of its bucket, so that a bucket may have nothing but fetches, and then no piece.
  // Otherwise each parameter once, where backward completes its gradient: at its first use in the graph, be it as an
  // input, as a fetched attribute that something takes (in whatever argument) or in a called module. Attributes that
  // are one tensor are one parameter. Fetches end no bucket: each bucket has a piece.
  bool each_use = true;
  // Counts parameters in keyword arguments, and in lists among the arguments, and those of a method that is called on
  // the result of a function.
  bool nested_arguments = false;

  static CountingRules pytorch() { return {.ignored_if_inlined = true}; }
  // As DDP itself fills its buckets: each parameter that it reduces once.
  static CountingRules ddp() { return {.ignored_if_inlined = false, .each_use = false, .nested_arguments = true}; }
};

struct BucketSplitterOptions {
  std::int64_t bucket_bytes_cap = 25 * 1024 * 1024;   // DDP's bucket_cap_mb
  std::int64_t first_bucket_bytes_cap = 1024 * 1024;  // of the bucket that is reduced first, at the graph's end
  CountingRules rules;
  graph::PartitionOrder order = graph::PartitionOrder::Fx;  // in which the pieces are called
  // The items of a list or tuple are in the piece of the node that gives it. PyTorch lets the list itself cross over.
  bool keep_items_together = false;
  // Bytes of each bucket, from the graph's end on; the last one counts for all that follow. Takes the place of
  // bucket_bytes_cap and first_bucket_bytes_cap, and may begin with a larger one. Empty: these two.
  std::vector<std::int64_t> bucket_bytes_caps = {};

  // How many bytes fill bucket #`number`, counted from the graph's end.
  std::int64_t cap_of(std::size_t number) const;
};

// The part of the graph whose parameters fill one of DDP's buckets.
struct ForwardBucket {
  std::int64_t bytes = 0;               // of the parameters' storages
  std::vector<std::string> parameters;  // in the order in which they were met, from the graph's end
  std::vector<graph::Node*> nodes;      // of the graph that was given, in its order; without placeholders and output
  // A bucket without a value that others use cannot be cut off, and goes on growing.
  std::int64_t extended_ops = 0;            // nodes taken in since it was full, at a cap of 0 the first too
  std::int64_t bytes_before_extension = 0;  // `bytes` when it was full; says nothing where extended_ops is 0
};

// The buckets in the graph's order; DDP reduces the last one first. At least one, which may be empty. Nodes belong to
// `module` and live as long as it does. Cost: linear in nodes and uses. A cap of 0 cuts wherever it can. Throws
// c10::ValueError when a cap is negative or the first cap larger than the other; for a parameter that counts with a
// symbolic size where its storage is not known, with a negative size or storage, or with more than 63 bits of bytes;
// and for a bucket with as many.
std::vector<ForwardBucket> assign_buckets(const graph::GraphModule& module, const BucketSplitterOptions& options = {});

struct BucketSplit {
  std::vector<ForwardBucket> buckets;
  // One call of a submodule submod_<index> for each bucket, but for those that only fetch attributes (only with
  // each_use); graph::split_by() says in which order, and what happens where the graph has another thing of such a
  // name. `module` itself when there is only one bucket.
  std::shared_ptr<graph::GraphModule> module;
  bool was_split() const noexcept { return buckets.size() > 1; }
  // Why there are fewer cuts than the caps ask for, or fewer pieces than buckets, and which parameters are in no
  // bucket; empty when there is nothing to say.
  std::vector<std::string> warnings;
  // In the order in which they are called; `id` is the bucket's index. None when there is only one bucket.
  std::vector<graph::Partition> pieces;
};

// assign_buckets(), and the graph in pieces. `module` does not change; its tensors and submodules are shared.
// Symbols that a piece needs become its inputs, also where it only uses a tensor with such a size. Throws what
// assign_buckets() throws, and graph::GraphError when `module` is null and as graph::split_by() does.
BucketSplit split_by_buckets(const std::shared_ptr<graph::GraphModule>& module,
                             const BucketSplitterOptions& options = {});

// For people: a row for each bucket with its bytes, extension and parameters.
std::string bucket_table(const std::vector<ForwardBucket>& buckets);

}  // namespace rehearse::parallel
