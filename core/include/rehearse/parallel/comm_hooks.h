// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

namespace rehearse::parallel {

class PowerSgd;

// Hooks for DistributedDataParallel::register_comm_hook(): what happens to a bucket of gradients in place of
// an all-reduce that adds them up and a division by the size of the group. LibTorch's own two are named by
// c10d::BuiltinCommHookType.
using CommHook = std::function<c10::intrusive_ptr<c10::ivalue::Future>(c10d::GradBucket& bucket)>;

// A hook of your own. The future holds the tensor of reduced gradients, of the size and dtype of
// bucket.getBuffer(), or a list with that one tensor.
std::unique_ptr<c10d::CommHookInterface> comm_hook(CommHook hook);

// What DDP does without a hook, but divides first: to be wrapped. PyTorch's allreduce_hook.
std::unique_ptr<c10d::CommHookInterface> allreduce_hook(c10::intrusive_ptr<c10d::ProcessGroup> group);

// Gradients travel, and are added up, as bfloat16: bf16_compress_wrapper(allreduce_hook(group)).
std::unique_ptr<c10d::CommHookInterface> bf16_compress_hook(c10::intrusive_ptr<c10d::ProcessGroup> group);

// Run `hook` on gradients cast to float16 or bfloat16; what it gives is cast back into the gradients.
// PyTorch's fp16_compress_wrapper and bf16_compress_wrapper.
std::unique_ptr<c10d::CommHookInterface> fp16_compress_wrapper(std::unique_ptr<c10d::CommHookInterface> hook);
std::unique_ptr<c10d::CommHookInterface> bf16_compress_wrapper(std::unique_ptr<c10d::CommHookInterface> hook);

// Low-rank approximations of gradients; `power_sgd` is shared so that its statistics can be read.
std::unique_ptr<c10d::CommHookInterface> power_sgd_hook(std::shared_ptr<PowerSgd> power_sgd);

}  // namespace rehearse::parallel
