// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include <fmt/format.h>

#include <rehearse/graph/split.h>
#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::parallel {
namespace {

std::vector<std::string> warnings_of(const std::vector<ForwardBucket>& buckets, const BucketSplitterOptions& options) {
  std::vector<std::string> warnings;
  for (std::size_t index = 0; index < buckets.size(); ++index) {
    const ForwardBucket& bucket = buckets[index];
    if (bucket.extended_ops == 0) continue;
    warnings.push_back(fmt::format(
        "bucket {} was full with {} bytes, but nothing in it was used outside, so it took in {} more nodes and {} bytes",
        index, bucket.bytes_before_extension, bucket.extended_ops, bucket.bytes - bucket.bytes_before_extension));
  }
  if (buckets.size() > 1) return warnings;
  const std::int64_t bytes = buckets.front().bytes;
  if (bytes == 0) {
    warnings.push_back("the graph was not split: it uses no parameters that DDP reduces");
  } else if (bytes >= options.first_bucket_bytes_cap && warnings.empty()) {
    warnings.push_back(fmt::format("the graph was not split: nothing comes before the node that fills the first bucket "
                                   "({} of {} bytes), but operations without parameters",
                                   bytes, options.first_bucket_bytes_cap));
  }
  return warnings;
}

}  // namespace

BucketSplit split_by_buckets(const std::shared_ptr<graph::GraphModule>& module, const BucketSplitterOptions& options) {
  BucketSplit split{assign_buckets(*module, options), module, {}};
  split.warnings = warnings_of(split.buckets, options);
  if (!split.was_split()) return split;
  std::unordered_map<const graph::Node*, int> piece_of;
  for (std::size_t index = 0; index < split.buckets.size(); ++index) {
    for (const graph::Node* node : split.buckets[index].nodes) piece_of.emplace(node, static_cast<int>(index));
  }
  split.module = graph::split_by(*module, [&](const graph::Node& node) { return piece_of.at(&node); }).module;
  return split;
}

}  // namespace rehearse::parallel
