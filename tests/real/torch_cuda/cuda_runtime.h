// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// What LibTorch is told of CUDA in this process, and has asked.
struct CudaRuntime {
  static constexpr int kDevices = 3;
  int current_device = 0;
  int questions = 0;  // which device is current
  int changes = 0;    // of the current device
};
extern CudaRuntime cuda_runtime;

}  // namespace rehearse::real
