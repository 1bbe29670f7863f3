// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::compiler {

// A graph makes an autograd leaf if a value begins to require grad (requires_grad_()). A back end may run its graphs
// below autograd, but autograd knows a leaf only if it sees the tensor itself. Therefore the graph is split before and
// after each requires_grad_() node, and that node runs under autograd, between the compiled pieces.
bool makes_leaf(const graph::GraphModule& module);

struct LeafCuts {
  std::shared_ptr<graph::GraphModule> module;  // calls the pieces in the program's order
  std::vector<std::string> piece_of_bucket;    // the first piece of each bucket
};

// Splits the graph around each node that makes a leaf and at the end of each bucket. With at most one bucket, splits
// only at leaves.
LeafCuts cut_at_leaves(const graph::GraphModule& module, const std::vector<parallel::ForwardBucket>& buckets);

}  // namespace rehearse::compiler
