// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse_internal/job/launched.h>

namespace rehearse::real {

// This process's GPU: that of its number among the processes of this host. Opens LibTorch's CUDA libraries, and makes
// the GPU the current device. Throws RunnerUnavailable where they, a driver, or a GPU of that number are missing.
at::Device own_gpu(const LaunchedProcess& process);

// Whether own_gpu() would give one.
bool has_gpu(const LaunchedProcess& process);

// c10d's own ProcessGroupNCCL, of LibTorch's CUDA library, which no executable links: its constructors are looked up by
// name. After own_gpu(). Connects with the first call. Throws RunnerUnavailable where the library has none.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout);

// "NCCL 2.28.9": what such a back end sends by. After own_gpu().
std::string nccl_below();

}  // namespace rehearse::real
