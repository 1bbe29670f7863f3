// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::compiler {

// A graph makes a leaf where a value begins to require grad (requires_grad_()). A back end may run its graphs below
// autograd, and autograd knows a leaf only if it sees the tensor itself. So the graph is cut in front of the node and
// behind it: the node runs under autograd, between what back ends compile.
bool makes_leaf(const graph::GraphModule& module);

struct LeafCuts {
  std::shared_ptr<graph::GraphModule> module;  // calls pieces, in the program's order
  std::vector<std::string> piece_of_bucket;    // the piece with which each bucket begins
};

// Cuts the graph around each node that makes a leaf, and where each of its `buckets` ends. With one bucket, or none,
// only the leaves cut.
LeafCuts cut_at_leaves(const graph::GraphModule& module, const std::vector<parallel::ForwardBucket>& buckets);

}  // namespace rehearse::compiler
