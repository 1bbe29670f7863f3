// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/call_site_scope.h>

#include <array>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/exec/call_site.h>

namespace {

using rehearse::exec::CallSite;
using rehearse::exec::CallSiteScope;
using testing::ElementsAre;

int g_asked_at = 0;

[[gnu::noinline]] std::vector<void*> asked_here() {
  std::array<void*, 1> address{};
  g_asked_at = __LINE__ + 1;
  CallSite::capture_to(address);
  return {address.front()};
}

std::vector<void*> in_scope() {
  std::array<void*, 4> out{};
  return std::vector<void*>(out.begin(), out.begin() + CallSiteScope::copy_to(out));
}

TEST(CallSiteScopes, TheInnermostCounts) {
  int places[3] = {};
  const std::vector<void*> outer = {&places[0]}, inner = {&places[1], &places[2]};
  EXPECT_THAT(in_scope(), ElementsAre());
  {
    const CallSiteScope first(outer);
    EXPECT_THAT(in_scope(), ElementsAre(&places[0]));
    {
      const CallSiteScope second(inner);
      EXPECT_THAT(in_scope(), ElementsAre(&places[1], &places[2]));
      const CallSiteScope none({});
      EXPECT_THAT(in_scope(), ElementsAre());
    }
    EXPECT_THAT(in_scope(), ElementsAre(&places[0]));
  }
  EXPECT_THAT(in_scope(), ElementsAre());
}

TEST(CallSiteScopes, AsManyAsFit) {
  int places[3] = {};
  const std::vector<void*> three = {&places[0], &places[1], &places[2]};
  const CallSiteScope scope(three);
  std::array<void*, 2> out{};
  EXPECT_EQ(CallSiteScope::copy_to(out), 2);
  EXPECT_THAT(out, ElementsAre(&places[0], &places[1]));
  EXPECT_EQ(CallSiteScope::copy_to({}), 0);
}

TEST(CallSiteScopes, ACallSite_BeginsThereAndGoesOnHere) {
  const std::vector<void*> asked = asked_here();
  const CallSiteScope scope(asked);
  const auto frames = CallSite::capture().user_frames();
  ASSERT_GE(frames.size(), 2);
  EXPECT_NE(frames[0].function.find("asked_here"), std::string::npos) << frames[0].function;
  EXPECT_NE(frames[1].function.find("TestBody"), std::string::npos) << frames[1].function;
  if (frames[0].line != 0) {
    EXPECT_EQ(frames[0].line, g_asked_at);
  }
}

}  // namespace
