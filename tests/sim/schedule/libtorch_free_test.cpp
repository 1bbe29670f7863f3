// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include <gtest/gtest.h>
#include <link.h>

namespace rehearse::sim {
namespace {

// Oracles, clock and replay must work without LibTorch, because a search of schedules starts very many runs.
TEST(ScheduleCode, Linked_DoesNotNeedLibTorch) {
  std::string libtorch;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string name = info->dlpi_name;
        if (name.find("libtorch") != std::string::npos || name.find("libc10") != std::string::npos) {
          *static_cast<std::string*>(found) = name;
        }
        return 0;
      },
      &libtorch);
  EXPECT_EQ(libtorch, "");
}

}  // namespace
}  // namespace rehearse::sim
