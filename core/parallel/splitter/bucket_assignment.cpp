// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <c10/util/Exception.h>

#include <rehearse/parallel/bucket_splitter.h>

#include "parallel/splitter/parameter_uses.h"

namespace rehearse::parallel {
namespace {

using graph::Node;
using graph::Op;

void check_caps(const BucketSplitterOptions& options) {
  if (!options.bucket_bytes_caps.empty()) {
    for (const std::int64_t cap : options.bucket_bytes_caps) {
      TORCH_CHECK_VALUE(cap >= 0, "bucket_bytes_caps must not have a negative number, but has ", cap);
    }
    return;
  }
  TORCH_CHECK_VALUE(options.first_bucket_bytes_cap >= 0, "first_bucket_bytes_cap must not be negative, but is ",
                    options.first_bucket_bytes_cap);
  TORCH_CHECK_VALUE(options.first_bucket_bytes_cap <= options.bucket_bytes_cap,
                    "First bucket should be smaller/equal to other buckets to get comms warmed up ASAP, but "
                    "first_bucket_bytes_cap is ",
                    options.first_bucket_bytes_cap, " and bucket_bytes_cap ", options.bucket_bytes_cap);
}

// A bucket that is being filled, from the graph's end: nodes are in reverse order.
struct Filling {
  ForwardBucket bucket;
  // A node's users come later in the graph, so a user that is not in the bucket by now will never be in it.
  std::unordered_set<const Node*> members;
  bool has_external_output = false;

  void add(Node& node, bool can_be_output) {
    members.insert(&node);
    bucket.nodes.push_back(&node);
    has_external_output =
        has_external_output ||
        (can_be_output && std::ranges::any_of(node.users(), [&](const Node* user) { return !members.contains(user); }));
  }
};

class BucketAssignment {
 public:
  BucketAssignment(const graph::GraphModule& module, const BucketSplitterOptions& options)
      : uses_(module, options.rules), options_(options) {
    filling_.emplace_back();
  }

  void take(Node& node) {
    if (is_full()) close_or_extend();
    ForwardBucket& bucket = filling_.back().bucket;
    for (auto& [name, bytes] : uses_.of(node)) {
      TORCH_CHECK_VALUE(!__builtin_add_overflow(bucket.bytes, bytes, &bucket.bytes),
                        "the bytes of the bucket of parameter ", name, " do not fit into 63 bits");
      bucket.parameters.push_back(std::move(name));
    }
    // A fetch of an attribute is in no piece, so its value is not a piece's output. PyTorch (`each_use`) nevertheless
    // treats it as one.
    filling_.back().add(node, options_.rules.each_use || node.op() != Op::GetAttr);
  }

  std::vector<ForwardBucket> finish() {
    merge_preamble();
    std::vector<ForwardBucket> buckets;
    for (auto filling = filling_.rbegin(); filling != filling_.rend(); ++filling) {
      std::ranges::reverse(filling->bucket.nodes);
      buckets.push_back(std::move(filling->bucket));
    }
    return buckets;
  }

 private:
  bool is_full() const { return filling_.back().bucket.bytes >= options_.cap_of(filling_.size() - 1); }

  void close_or_extend() {
    Filling& current = filling_.back();
    if (current.has_external_output) {
      filling_.emplace_back();
      return;
    }
    if (current.bucket.extended_ops == 0) current.bucket.bytes_before_extension = current.bucket.bytes;
    ++current.bucket.extended_ops;
  }

  // Nodes at the graph's start, before the first parameter with bytes, belong to the graph's first bucket.
  void merge_preamble() {
    if (filling_.size() < 2 || filling_.back().bucket.bytes != 0) return;
    const ForwardBucket preamble = std::move(filling_.back().bucket);
    filling_.pop_back();
    ForwardBucket& following = filling_.back().bucket;
    following.nodes.insert(following.nodes.end(), preamble.nodes.begin(), preamble.nodes.end());
    following.parameters.insert(following.parameters.end(), preamble.parameters.begin(), preamble.parameters.end());
  }

  ParameterUses uses_;
  BucketSplitterOptions options_;
  std::vector<Filling> filling_;  // from the graph's end
};

}  // namespace

std::int64_t BucketSplitterOptions::cap_of(std::size_t number) const {
  if (!bucket_bytes_caps.empty()) return bucket_bytes_caps[std::min(number, bucket_bytes_caps.size() - 1)];
  return number == 0 ? first_bucket_bytes_cap : bucket_bytes_cap;
}

std::vector<ForwardBucket> assign_buckets(const graph::GraphModule& module, const BucketSplitterOptions& options) {
  check_caps(options);
  BucketAssignment assignment(module, options);
  for (Node* node = module.graph().last(); node; node = node->prev()) {
    if (node->op() != Op::Output && node->op() != Op::Placeholder) assignment.take(*node);
  }
  return assignment.finish();
}

}  // namespace rehearse::parallel
