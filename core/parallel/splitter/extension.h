// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::parallel {

// The parameters and nodes that a bucket got after it was full and had a node.
struct Extension {
  std::int64_t nodes = 0;
  std::optional<std::int64_t> bytes;  // nullopt: it was full from the start, so its size at that time is unknown
};

// With a first cap of 0, the bucket at the graph's end is full before it has a node. As in PyTorch, its extended_ops
// then counts the first node, too.
inline Extension extension_of(const std::vector<ForwardBucket>& buckets, std::size_t index) {
  const ForwardBucket& bucket = buckets[index];
  const bool from_the_start = index + 1 == buckets.size() && bucket.bytes_before_extension == 0;
  if (bucket.extended_ops > 0 && from_the_start) return {bucket.extended_ops - 1, std::nullopt};
  return {bucket.extended_ops, bucket.bytes - bucket.bytes_before_extension};
}

}  // namespace rehearse::parallel
