// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/parallel/active_ddp.h>
#include <rehearse/parallel/bucket_splitter.h>

namespace rehearse::compiler {

// PyTorch's DDPOptimizer as an object (torch/_dynamo/backends/distributed.py): a back end that cuts the graph where
// gradient buckets end and lets another back end compile the pieces in the order of their calls. Under data parallelism
// compile() already does this by itself; use this class to test the cuts, or to cut without data parallelism. Pass it
// as CompileOptions::backend. Under data parallelism also switch optimize_ddp off, or compile() cuts first. Parameters
// that the surrounding data parallelism ignores count towards no bucket.
//
// explain() sees one graph, the whole one; buckets() and pieces() say how it was cut. If another back end has changed
// the layouts of a graph's inputs since the capture, the graph goes to the inner back end uncut.
class SplitByDdp final : public Backend {
 public:
  // `caps`: the bucket caps; the names of ignored parameters come with the graph. Throws std::invalid_argument if
  // `inner` is null.
  explicit SplitByDdp(parallel::DdpBuckets caps, std::shared_ptr<Backend> inner = make_backend("aot_eager"));

  std::string name() const override { return "split_by_ddp"; }
  // Throws what the inner back end throws, BackendMismatch if the inner back end states something false, and
  // c10::ValueError for a negative cap.
  CompiledGraph compile(const BackendInput& input) override;

  // The buckets of the graph that was compiled last, in its order; empty if it was not cut. Their nodes belong to that
  // graph, which lives until the next compile().
  const std::vector<parallel::ForwardBucket>& buckets() const noexcept { return buckets_; }
  // The pieces of that graph, or the whole graph if it was not cut. A graph that must run eagerly is listed, too,
  // although the inner back end does not get it. Empty for a graph with changed layouts.
  const std::vector<GraphExplanation>& pieces() const noexcept { return pieces_; }

 private:
  parallel::DdpBuckets caps_;
  std::shared_ptr<Backend> inner_;
  std::shared_ptr<graph::GraphModule> module_;  // owns the nodes that the buckets name
  std::vector<parallel::ForwardBucket> buckets_;
  std::vector<GraphExplanation> pieces_;
};

}  // namespace rehearse::compiler
