// SPDX-License-Identifier: BSD-3-Clause
// Contract: if LibTorch, or another library, uses the dispatch key of Rehearse's fakes, the first capture says so.
#include <cstdio>
#include <cstdlib>

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

namespace rehearse::capture {
namespace {

[[noreturn]] void capture_after_a_foreign_fallback() {
  torch::Library foreign(torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__);
  foreign.fallback(torch::CppFunction::makeFallthrough());
  try {
    const FakeMode mode(nullptr);
  } catch (const torch_state::TorchStateError& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(0);
  }
  std::_Exit(1);
}

TEST(ForeignFakesDeathTest, FallbackOfAnother_IsAnErrorOfTheFirstCapture) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, in which nothing was captured yet
  EXPECT_EXIT(capture_after_a_foreign_fallback(), testing::ExitedWithCode(0),
              "has a fallback of its own for the dispatch key Fake");
}

}  // namespace
}  // namespace rehearse::capture
