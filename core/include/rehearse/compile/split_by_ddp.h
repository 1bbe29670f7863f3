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
// gradient buckets end, and has another one compile the pieces in the order in which they are called. compile() does so
// by itself under data parallelism; this is for its tests, and for cuts without it. Give it as CompileOptions::backend,
// with optimize_ddp off under data parallelism, which would else cut before it. Parameters that the data parallelism
// around the call ignores count nowhere.
//
// explain() sees one graph, the whole one; what became of it is here. A graph whose inputs another back end has laid
// out anew goes to the inner back end as it is.
class SplitByDdp final : public Backend {
 public:
  // `caps`: its caps; the names of ignored parameters come with the graph. Throws std::invalid_argument where `inner`
  // is null.
  explicit SplitByDdp(parallel::DdpBuckets caps, std::shared_ptr<Backend> inner = make_backend("aot_eager"));

  std::string name() const override { return "split_by_ddp"; }
  // Throws what the inner back end throws, BackendMismatch where it states what is false, and c10::ValueError for a
  // negative cap.
  CompiledGraph compile(const BackendInput& input) override;

  // Of the graph that was compiled last, in its order; none where it is not cut. Nodes belong to that graph, which
  // lives until the next one is compiled.
  const std::vector<parallel::ForwardBucket>& buckets() const noexcept { return buckets_; }
  // What the inner back end got of it.
  const std::vector<GraphExplanation>& pieces() const noexcept { return pieces_; }

 private:
  parallel::DdpBuckets caps_;
  std::shared_ptr<Backend> inner_;
  std::shared_ptr<graph::GraphModule> module_;  // whose nodes the buckets name
  std::vector<parallel::ForwardBucket> buckets_;
  std::vector<GraphExplanation> pieces_;
};

}  // namespace rehearse::compiler
