// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/default_comm_hooks.hpp>

#include <rehearse/parallel/ddp_options.h>

namespace torch::nn {
class Module;
}

namespace rehearse::parallel {

// The part of DistributedDataParallel that does not depend on the module's type. Use that; it documents what
// the calls of the same name do.
class ReducerSession {
 public:
  ReducerSession(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
                 DistributedDataParallelOptions options);
  ReducerSession(const ReducerSession&) = delete;
  ReducerSession& operator=(const ReducerSession&) = delete;
  ~ReducerSession();

  // Blocks for the collectives of join(), of bucket rebuilding (second iteration) and of buffers.
  void before_forward();

  // The dtype that floating-point inputs of the module are to have. None: whatever they have.
  std::optional<at::ScalarType> input_dtype() const noexcept;

  // Does after_forward() want the tensors of the output?
  bool wants_outputs() const noexcept;

  // If it wants them, puts tensors of the same values into `outputs`, through which backward passes to the
  // reducer even for those that the loss leaves out.
  void after_forward(std::vector<at::Tensor>& outputs);

  // Are gradients of this and the following iterations reduced? Returns what was set before.
  bool set_gradient_sync(bool on) noexcept;

  void join(const JoinOptions& options, const std::function<void()>& body);

  void register_comm_hook(c10d::BuiltinCommHookType hook);
  void register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name);

  std::vector<at::Tensor> parameters() const;
  std::vector<GradientBucket> buckets() const;
  bool broadcasts_buffers() const noexcept;
  c10::DDPLoggingData logging_data() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::parallel
