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

// The part of DistributedDataParallel that does not depend on the module's type. Programs use DistributedDataParallel,
// which documents the functions of the same names.
class ReducerSession {
 public:
  ReducerSession(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
                 DistributedDataParallelOptions options);
  ReducerSession(const ReducerSession&) = delete;
  ReducerSession& operator=(const ReducerSession&) = delete;
  ~ReducerSession();

  // Blocks until its collectives have ended: those of join(), those that make new buckets (in the second iteration),
  // and the broadcasts of buffers.
  void before_forward();

  // The dtype to which to cast floating-point inputs of the module; nullopt: none.
  std::optional<at::ScalarType> input_dtype() const noexcept;

  // Whether after_forward() needs the tensors in the output.
  bool wants_outputs() const noexcept;

  // If wants_outputs(), replaces `outputs` by tensors of equal values through which backward reaches the reducer, even
  // for outputs that the loss leaves out.
  void after_forward(std::vector<at::Tensor>& outputs);

  // Sets whether the gradients of forwards that begin from now on are reduced. Returns the previous setting.
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
