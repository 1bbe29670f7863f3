// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::real {

// Opens the libraries that LibTorch needs for GPUs (libtorch_cuda, which lies beside this process's libtorch_cpu, and
// with it libc10_cuda). No executable links them, so a simulation never loads them. They register LibTorch's device
// interface, operators and hooks, and stay open. Call this before anybody asks LibTorch whether there is CUDA, because
// LibTorch remembers the answer.
//
// Blocks for as long as the loader needs, about a second. Throws RunnerUnavailable.
void open_device_libraries();

// Makes NVIDIA's loaded libraries wait for their threads and devices by libc's own functions. Otherwise a rank that was
// switched away in the middle of such a wait would hold their locks. Throws RunnerUnavailable.
void leave_device_libraries_alone();

// How many GPUs this process may use; 0 without a driver. Call open_device_libraries() first.
int device_count();

// The NCCL that LibTorch's libraries use: "NCCL 2.28.9", or "NCCL" if the version is unknown. Call
// open_device_libraries() first.
std::string nccl_of_libtorch();

}  // namespace rehearse::real
