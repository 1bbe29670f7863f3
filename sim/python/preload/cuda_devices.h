// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::python {

// From now on "cuda" means the CPU wherever Python code names a device. Call it once, after torch has been imported.
// Throws std::runtime_error if this torch lacks a function that is replaced, and names it.
void let_cuda_be_cpu();

// From now on "cuda" names a device that has the CPU's memory (device/cuda.h). Otherwise as let_cuda_be_cpu().
void let_cuda_be_device();

}  // namespace rehearse::python
