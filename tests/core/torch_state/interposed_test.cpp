// SPDX-License-Identifier: BSD-3-Clause
// Contract: a function that LibTorch calls and Rehearse does not replace is an error at start, and names what goes
// wrong.
#include "torch_state/interposed.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/torch_state/torch_state_error.h>

#include "torch_state/inter_op_pool.h"
#include "torch_state/tcp_store.h"

namespace rehearse::torch_state {
namespace {

using Reason = TorchStateError::Reason;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kLibTorchsOwn = "_ZN2at15get_num_threadsEv";

void expect_error(const Interposed& function, Reason reason, const testing::Matcher<std::string>& what) {
  try {
    require_interposed(function);
    ADD_FAILURE() << function.function << " was accepted";
  } catch (const TorchStateError& error) {
    EXPECT_EQ(error.reason(), reason);
    EXPECT_THAT(error.what(), what);
  }
}

TEST(Interposed, FunctionsOfThisLibTorch_ComeToUs) {
  EXPECT_NO_THROW(require_interposed(interposed_store()));
  for (const Interposed& function : interposed_pools()) EXPECT_NO_THROW(require_interposed(function));
}

TEST(Interposed, NamesThatThisLibTorchDoesNotHave_DoNotMatter) {
  Interposed store = interposed_store();
  store.names.insert(store.names.begin(), {"_ZN4c10d7nowhereEv", nullptr});
  EXPECT_NO_THROW(require_interposed(store));
}

TEST(Interposed, FunctionThatLibTorchCallsItself_IsAnError) {
  expect_error({"at::get_num_threads()", "ranks would disagree", {{kLibTorchsOwn, nullptr}}},
               Reason::interposer_missing, HasSubstr("does not export at::get_num_threads(), so ranks would disagree"));
}

TEST(Interposed, FunctionThatLibTorchDoesNotHave_IsAnotherVersion) {
  const Interposed gone{"c10d::nowhere()", "ranks would be lost", {{"_ZN4c10d7nowhereEv", nullptr}}};
  expect_error(gone, Reason::version_differs,
               AllOf(HasSubstr("has no c10d::nowhere(), so ranks would be lost"),
                     HasSubstr("REHEARSE_UNTESTED_LIBTORCH=1 tries this one")));
  ::setenv("REHEARSE_UNTESTED_LIBTORCH", "1", 1);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(require_interposed(gone));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has no c10d::nowhere(), so ranks would be lost"));
  ::unsetenv("REHEARSE_UNTESTED_LIBTORCH");
}

}  // namespace
}  // namespace rehearse::torch_state
