// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

namespace rehearse::test {

inline WorldOptions checked(int ranks = 2) {
  WorldOptions options;
  options.ranks = ranks;
  options.check_buffers = true;
  options.check_sharing = true;
  return options;
}

inline Report run_checked(const World::Body& body, const WorldOptions& options = checked()) {
  return World(options).run(body);
}

inline bool says(const Report& report, const std::string& text) {
  return report.verdict == Verdict::check_failed && report.headline.find(text) != std::string::npos;
}

// One mistake for each checker, and what the report says of it.
struct Mistake {
  const char* headline;
  void (*make)(RankContext& ctx);
};

inline constexpr Mistake kMistakes[] = {
    {"rank 1: aten::zero_ at ",
     [](RankContext& ctx) {
       auto value = at::ones({4});
       const auto work = ctx.group().allreduce(value);
       if (ctx.rank() == 1) value.zero_();
       work->wait();
     }},
    {" use the same memory, which processes do not share: ",
     [](RankContext& ctx) {
       static const auto shared = at::ones({4});
       ctx.group().allreduce(shared)->wait();
     }},
    {", but only the root has the result: ",
     [](RankContext& ctx) {
       auto value = at::ones({4});
       ctx.group().reduce(value, 0)->wait();
       value.sum();
     }},
};

// Expects that the checkers are silent about the program. They must find a mistake behind it: otherwise, they are
// silent because they did not look.
inline void expect_silent(const World::Body& body, WorldOptions options = checked()) {
  const auto report = run_checked(body, options);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  options.explain_failures = false;
  for (const Mistake& mistake : kMistakes) {
    const auto with_mistake = run_checked(
        [&](RankContext& ctx) {
          body(ctx);
          mistake.make(ctx);
        },
        options);
    EXPECT_TRUE(says(with_mistake, mistake.headline)) << mistake.headline << "\n" << with_mistake.headline;
  }
}

// A place as reports name it: "buffer_check_test.cpp:41".
inline std::string place(const char* file, int line) {
  const std::string path = file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
}

}  // namespace rehearse::test
