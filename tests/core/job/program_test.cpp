// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/program.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

REHEARSE_PROGRAM(zeta){.summary = "last by name", .body = [](RankContext&, const Parameters&) {}};
REHEARSE_PROGRAM(alpha){.summary = "first by name",
                        .parameters = {{"steps", std::int64_t{20}, "training steps", 1, 100}},
                        .body = [](RankContext&, const Parameters&) {}};

TEST(Programs, RegisteredByMacro_FoundByNameInOrder) {
  const auto all = programs();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]->name, "alpha");
  EXPECT_EQ(all[1]->name, "zeta");
  EXPECT_EQ(find_program("alpha"), all[0]);
  EXPECT_EQ(find_program("alpha")->spec.parameters.at(0).name, "steps");
  EXPECT_EQ(find_program("alpha")->spec.summary, "first by name");
  EXPECT_EQ(find_program("beta"), nullptr);
}

// The linked programs come first, and only they are listed.
TEST(Programs, OfAnotherKind_AreFoundByTheirNames) {
  struct Scripts final : ProgramKind {
    const Program* find(std::string_view name) override { return name.ends_with(".py") ? &script : nullptr; }
    Program script{"train.py", {.summary = "a script", .body = {}, .takes_arguments = true}};
  };
  static Scripts scripts;  // as long as the process
  add_program_kind(scripts);
  EXPECT_EQ(find_program("train.py"), &scripts.script);
  EXPECT_EQ(find_program("alpha"), programs()[0]);
  EXPECT_EQ(find_program("beta"), nullptr);
  EXPECT_EQ(programs().size(), 2u);
}

// The registry is global to the process, so another process registers the second program of the same name.
TEST(Programs, TwoOfOneName_AreAnErrorOnLookup) {
  const auto clash = [] {
    RegisteredProgram again(ProgramName("zeta") << ProgramSpec{.summary = "", .body = {}});
    try {
      programs();
    } catch (const std::logic_error& error) {
      std::fputs(error.what(), stderr);
      std::exit(3);
    }
  };
  EXPECT_EXIT(clash(), testing::ExitedWithCode(3), "two programs of this executable are named \"zeta\"");
}

}  // namespace
}  // namespace rehearse
