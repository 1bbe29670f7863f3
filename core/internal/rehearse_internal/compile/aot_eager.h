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

// The back end "aot_eager". Turns each graph into a forward and a backward of ATen operators below autograd, recorded
// once (capture_joint, partition_joint) and run operator by operator. Each call adds one node to autograd's graph, and
// the graph's parameters get their gradients when that node has run. Therefore DDP can reduce a bucket while the
// backward of earlier pieces runs. Results and gradients have the same bits as in eager mode.
//
// The first backward is recorded for gradients with the layouts of the results. Another backward is recorded when
// gradients with other layouts arrive, or when results get no gradient.
//
// In three cases a gradient differs from eager mode in its last bits, because its parts are added in another order or
// type. First, if two pieces use a tensor and the earlier one uses it several times: that piece adds up its own parts
// first. Second, if a parameter is used more than once in one autocast region: it is cast for each use, as in PyTorch's
// compiled graphs. Third, if the gradient of a result has gaps in memory: it is copied first.
//
// Gradients of gradients are not supported; asking for one is an error. Some graphs run node by node under eager
// autograd, with a warning and a note in explain(). Examples are graphs whose backward cannot be recorded because
// LibTorch's code for it reads data (max() and prod() of a whole tensor), graphs that change one of two inputs that
// share memory, and graphs with in-place c10d calls. Their results are right, but their parameters get gradients one by
// one.
class AotEagerBackend final : public Backend {
 public:
  // The result of compile() for one graph. For a graph that runs under eager autograd, only the name and the reason are
  // set.
  struct Compiled {
    std::string name;
    capture::JointGraph joint;
    capture::JointPartition partition;
    std::string eager_because;
    std::shared_ptr<const AotProgram> program;  // runs forward and backward
  };

  std::string name() const override { return "aot_eager"; }
  // Differentiates if grad mode is on. Throws what capture_joint() throws, except FakeError, SharedInputChanges,
  // NoRecordedBackward and ShapeError: after one of these errors, the graph runs under eager autograd.
  CompiledGraph compile(const BackendInput& input) override;
  std::optional<std::string> cache_key() const override { return "joint graphs 1"; }
  // `stored`: a joint graph that another process recorded; see stored_joint().
  CompiledGraph restore(const BackendInput& input, const std::string& stored) override;

  // The graphs that this object has compiled or restored, in order, for tests and reports.
  const std::vector<std::shared_ptr<const Compiled>>& graphs() const noexcept { return graphs_; }

 private:
  CompiledGraph program_of(const BackendInput& input, capture::JointGraph joint);
  CompiledGraph compile_eagerly(const BackendInput& input, std::string why);

  std::vector<std::shared_ptr<const Compiled>> graphs_;
};

}  // namespace rehearse::compiler
