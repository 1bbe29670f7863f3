// SPDX-License-Identifier: BSD-3-Clause
// Ranks on fibers, each with a ShapeEnv of its own, switch between questions. Each rank must get the symbols, guards
// and lines that it gets without the others.
#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <gtest/gtest.h>

#include <rehearse/rehearse.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/shapes/guard_program.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "core/call_site/user_frame.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

namespace exec = rehearse::exec;
using c10::SymInt;
using rehearse::shapes::DataDependentError;
using rehearse::shapes::GuardProgram;
using rehearse::shapes::ShapeEnv;

// Asks the questions of a typical capture, and switches after each step.
std::string questions(std::int64_t rows) {
  const auto env = ShapeEnv::make();
  const auto pause = [] {
    if (exec::this_rank::is_fiber()) exec::this_rank::yield();
  };
  const SymInt batch = env->add_backed(rows, "x.size(0)");
  pause();
  const SymInt width = env->add_backed(rows + 1, "x.size(1)");
  const SymInt found = env->add_unbacked();
  pause();
  EXPECT_TRUE(batch * width >= rows);
  static_cast<void>(at::infer_size_dv(std::vector<SymInt>{-1, rows}, batch * width));
  pause();
  TORCH_SYM_CHECK(found.sym_le(batch), "at most a batch");
  pause();
  EXPECT_THROW(static_cast<void>(found > 1), DataDependentError);
  static_cast<void>(width.guard_int("f.h", static_cast<std::int64_t>(1)));
  pause();
  EXPECT_TRUE(GuardProgram(*env).holds(std::vector<std::int64_t>{rows, rows + 1}));
  EXPECT_FALSE(GuardProgram(*env).holds(std::vector<std::int64_t>{rows, rows + 2}));
  return env->text();
}

TEST(ShapesOnFibers, EachRankHasItsOwn) {
  std::vector<std::string> expected;
  for (int rank = 0; rank < 8; ++rank) expected.push_back(questions(rank + 2));
  EXPECT_NE(expected[0], expected[1]);
  rehearse::check({.ranks = 8}, [&expected](rehearse::RankContext& ctx) {
    EXPECT_EQ(questions(ctx.rank() + 2), expected[static_cast<std::size_t>(ctx.rank())]);
  });
}

TEST(ShapesOnFibers, ErrorsNameTheUsersLine) {
  rehearse::check({.ranks = 2}, [](rehearse::RankContext&) {
    const auto env = ShapeEnv::make();
    const SymInt found = env->add_unbacked();
    const int line = __LINE__ + 2;
    try {
      static_cast<void>(found == 3);
      ADD_FAILURE() << "not refused";
    } catch (const DataDependentError& error) {
      EXPECT_EQ(user_frame(error.where()).line, line);
      EXPECT_NE(std::string(error.what()).find("fibers_test.cpp:" + std::to_string(line)), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("u0 comes from fibers_test.cpp:"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
