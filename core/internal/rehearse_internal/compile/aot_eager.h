// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse_internal/capture/joint_partition.h>

namespace rehearse::compiler {

class AotProgram;

// The back end "aot_eager": each graph becomes a forward and a backward of ATen's operators below autograd, recorded
// once (capture_joint, partition_joint) and run operator by operator. A call leaves one step of autograd behind, and
// the graph's parameters get their gradients when that step ends: what lets DDP reduce a bucket while the backward of
// earlier pieces runs. Results and gradients have eager's bits.
//
// A backward is recorded for gradients that lie in memory as the results do; for others, and for results without a
// gradient, another one is recorded when they come.
//
// Three things keep a gradient from eager's bits, all in the order or the type in which parts of it are added: a tensor
// that a piece uses more than once, and a later piece too (the piece adds up its own parts first); a parameter that is
// used more than once within one autocast region (it is cast for each use, as in PyTorch's compiled graphs); a gradient
// of a result that has gaps in memory (it is copied first).
//
// What it does not do: gradients of gradients (an error when they are asked for). A graph whose backward cannot be
// recorded, as LibTorch's own code for it reads data (max() and prod() of a whole tensor), or which changes one of two
// inputs that share memory, runs node by node under eager autograd, with a warning and a word in explain(): right
// results, but its parameters get their gradients one by one.
class AotEagerBackend final : public Backend {
 public:
  // What became of one graph. One that runs under eager autograd has nothing but its name and why.
  struct Compiled {
    std::string name;
    capture::JointGraph joint;
    capture::JointPartition partition;
    std::string eager_because;
    std::shared_ptr<const AotProgram> program;  // what runs them
  };

  std::string name() const override { return "aot_eager"; }
  // Differentiates when gradient mode is on. Throws what capture_joint() throws but for FakeError and
  // SharedInputChanges.
  CompiledGraph compile(const BackendInput& input) override;
  std::optional<std::string> cache_key() const override { return "joint graphs 1"; }
  // `stored` is a joint graph that another process has recorded; see stored_joint().
  CompiledGraph restore(const BackendInput& input, const std::string& stored) override;

  // In the order in which they came, for tests and reports.
  const std::vector<std::shared_ptr<const Compiled>>& graphs() const noexcept { return graphs_; }

 private:
  CompiledGraph program_of(const BackendInput& input, capture::JointGraph joint);
  CompiledGraph compile_eagerly(const BackendInput& input, std::string why);

  std::vector<std::shared_ptr<const Compiled>> graphs_;
};

}  // namespace rehearse::compiler
