// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

namespace rehearse::parallel {

class PowerSgd;

// Hooks for DistributedDataParallel::register_comm_hook(). A hook reduces a bucket of gradients, in place of the
// default: a division by the size of the group, and then an all-reduce that sums. c10d::BuiltinCommHookType names
// LibTorch's own two hooks.
using CommHook = std::function<c10::intrusive_ptr<c10::ivalue::Future>(c10d::GradBucket& bucket)>;

// Makes a hook from your function. Its future must hold the tensor of reduced gradients, with the size and dtype of
// bucket.getBuffer(), or a list with that one tensor.
std::unique_ptr<c10d::CommHookInterface> comm_hook(CommHook hook);

// PyTorch's allreduce_hook: divides and sums, as DDP does without a hook. For use in a wrapper such as
// bf16_compress_wrapper().
std::unique_ptr<c10d::CommHookInterface> allreduce_hook(c10::intrusive_ptr<c10d::ProcessGroup> group);

// Sends and sums gradients as bfloat16: bf16_compress_wrapper(allreduce_hook(group)).
std::unique_ptr<c10d::CommHookInterface> bf16_compress_hook(c10::intrusive_ptr<c10d::ProcessGroup> group);

// PyTorch's fp16_compress_wrapper and bf16_compress_wrapper: run `hook` on gradients cast to float16 or bfloat16, and
// cast its result back.
std::unique_ptr<c10d::CommHookInterface> fp16_compress_wrapper(std::unique_ptr<c10d::CommHookInterface> hook);
std::unique_ptr<c10d::CommHookInterface> bf16_compress_wrapper(std::unique_ptr<c10d::CommHookInterface> hook);

// Sends low-rank approximations of gradients. The caller may keep `power_sgd` to read its statistics.
std::unique_ptr<c10d::CommHookInterface> power_sgd_hook(std::shared_ptr<PowerSgd> power_sgd);

}  // namespace rehearse::parallel
