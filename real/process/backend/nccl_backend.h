// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse_internal/job/launched.h>

namespace rehearse::real {

// The GPU of this process: its index is the process's local rank. Opens LibTorch's CUDA libraries and makes the GPU the
// current device. Throws RunnerUnavailable if the libraries, a driver, or a GPU with that number are missing.
at::Device own_gpu(const LaunchedProcess& process);

// True if own_gpu() would return a GPU.
bool has_gpu(const LaunchedProcess& process);

// Makes c10d's own ProcessGroupNCCL. That class is in LibTorch's CUDA library, which no executable links, so this
// function looks up the constructors by name. Call own_gpu() first. The group connects at its first call. Throws
// RunnerUnavailable if the library has no such class.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout);

// The transport of the back ends that make_nccl() makes: "NCCL 2.28.9", or "NCCL" if the version is unknown. Call
// own_gpu() first.
std::string nccl_below();

}  // namespace rehearse::real
