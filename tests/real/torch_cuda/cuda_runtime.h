// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// The answers about CUDA that LibTorch gets in this process, and counters of its calls.
struct CudaRuntime {
  static constexpr int kDevices = 3;
  int current_device = 0;
  int questions = 0;  // calls of cudaGetDevice()
  int changes = 0;    // calls of cudaSetDevice()
};
extern CudaRuntime cuda_runtime;

}  // namespace rehearse::real
