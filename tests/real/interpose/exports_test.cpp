// SPDX-License-Identifier: BSD-3-Clause
// Runs in a program that links nothing of CUDA, like a user's.
#include <gtest/gtest.h>

#include "interpose/cuda_calls.h"

namespace rehearse::real {
namespace {

TEST(CudaCallsOfAProgram, Executable_ExportsThem) { EXPECT_NO_THROW(require_cuda_calls()); }

}  // namespace
}  // namespace rehearse::real
