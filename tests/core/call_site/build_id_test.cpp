// SPDX-License-Identifier: BSD-3-Clause
// Contract: code without a build id counts by its file. This program is linked without one.
#include <rehearse_internal/exec/build_id.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace rehearse::exec {
namespace {

TEST(BuildId, ExecutableWithoutOne_CountsByItsFile) {
  ASSERT_EQ(executable_build_id(), "");
  const auto bytes = std::filesystem::file_size("/proc/self/exe");
  EXPECT_THAT(loaded_code(), ::testing::Contains(::testing::HasSubstr(fmt::format(" of {} bytes, ", bytes))));
}

}  // namespace
}  // namespace rehearse::exec
