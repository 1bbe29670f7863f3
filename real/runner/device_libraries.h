// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::real {

// Opens what LibTorch needs for GPUs (libtorch_cuda, beside the libtorch_cpu of this process, and with it libc10_cuda),
// which no executable links: a simulation never loads it. It registers LibTorch's device interface, operators and
// hooks, and stays open. Call it before LibTorch is asked whether there is CUDA: it remembers the answer.
//
// Blocks for as long as the loader needs, a second or so. Throws RunnerUnavailable.
void open_device_libraries();

// Has NVIDIA's libraries that are loaded by now wait for their threads and devices by libc's own functions: a rank that
// was switched away in the middle of one would hold its locks. Throws RunnerUnavailable.
void leave_device_libraries_alone();

// How many GPUs this process may use; 0 where there is no driver. After open_device_libraries().
int device_count();

// "NCCL 2.28.9": the NCCL that LibTorch's libraries use; "NCCL" where none says its version. After
// open_device_libraries().
std::string nccl_of_libtorch();

}  // namespace rehearse::real
