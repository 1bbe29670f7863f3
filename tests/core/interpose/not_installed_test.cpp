// SPDX-License-Identifier: BSD-3-Clause
// Rehearse refuses an executable whose linker script hides our functions, and says how to link it.
#include <gtest/gtest.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

TEST(NotInstalled, FirstWorld_SaysWhatIsWrongAndHowToLink) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      World(2).run([](int) {});
      FAIL() << "a world ran in which a rank could block all others";
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("the process calls pthread_cond_wait of /"), 0u) << text;
      EXPECT_NE(text.find("and not Rehearse's (which is in "), std::string::npos) << text;
      EXPECT_NE(text.find("Link rehearse::core (or rehearse::exec) into the executable itself"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace rehearse::exec::test
