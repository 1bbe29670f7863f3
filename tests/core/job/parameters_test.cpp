// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/parameters.h>

#include <limits>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<ParameterSpec> specs() {
  return {
      {"steps", std::int64_t{20}, "training steps", 1, 100000},
      {"rate", 0.1, "learning rate", 0, 1},
      {"verbose", false, "print each step"},
      {"model", std::string("mlp"), "which model"},
      {"warm_up", std::int64_t{0}, "steps before measuring", 0, kInfinity},
      {"offset", std::int64_t{0}, "added to every index", -kInfinity, 7},
  };
}

std::string error_of(const std::map<std::string, Parameters::Given>& given) {
  try {
    Parameters parameters(specs(), given);
  } catch (const ParameterError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of(const std::string& name, ParameterValue value) {
  return error_of({{name, {std::move(value), "lm.toml:7"}}});
}

TEST(Parameters, NothingGiven_AllFallbacks) {
  const Parameters parameters(specs(), {});
  EXPECT_EQ(parameters.integer("steps"), 20);
  EXPECT_EQ(parameters.number("rate"), 0.1);
  EXPECT_EQ(parameters.flag("verbose"), false);
  EXPECT_EQ(parameters.text("model"), "mlp");
  EXPECT_EQ(parameters.all().size(), 6u);
}

TEST(Parameters, Given_ReplacesFallbackAndBoundsAreInclusive) {
  const Parameters parameters(specs(), {{"steps", {std::int64_t{100000}, ""}},
                                        {"rate", {std::int64_t{1}, ""}},
                                        {"verbose", {true, ""}},
                                        {"model", {std::string("vit"), ""}},
                                        {"warm_up", {std::int64_t{1} << 60, ""}}});
  EXPECT_EQ(parameters.integer("steps"), 100000);
  EXPECT_EQ(parameters.number("rate"), 1.0);
  EXPECT_EQ(parameters.flag("verbose"), true);
  EXPECT_EQ(parameters.text("model"), "vit");
  EXPECT_EQ(parameters.integer("warm_up"), std::int64_t{1} << 60);
}

TEST(Parameters, WrongTypeOrOutOfBounds_NamesPlaceValueAndWhatIsRight) {
  EXPECT_EQ(error_of("steps", std::string("ten")),
            R"(lm.toml:7: parameter "steps" is "ten"; it takes an integer from 1 to 100000)");
  EXPECT_EQ(error_of("steps", std::int64_t{0}),
            R"(lm.toml:7: parameter "steps" is 0; it takes an integer from 1 to 100000)");
  EXPECT_EQ(error_of("steps", 2.5), R"(lm.toml:7: parameter "steps" is 2.5; it takes an integer from 1 to 100000)");
  EXPECT_EQ(error_of("rate", 1.5), R"(lm.toml:7: parameter "rate" is 1.5; it takes a number from 0 to 1)");
  EXPECT_EQ(error_of("rate", std::numeric_limits<double>::quiet_NaN()),
            R"(lm.toml:7: parameter "rate" is nan; it takes a number from 0 to 1)");
  EXPECT_EQ(error_of("verbose", std::int64_t{1}), R"(lm.toml:7: parameter "verbose" is 1; it takes true or false)");
  EXPECT_EQ(error_of("model", true), R"(lm.toml:7: parameter "model" is true; it takes a text)");
  EXPECT_EQ(error_of("warm_up", std::int64_t{-1}),
            R"(lm.toml:7: parameter "warm_up" is -1; it takes an integer of 0 or more)");
  EXPECT_EQ(error_of("offset", std::int64_t{8}),
            R"(lm.toml:7: parameter "offset" is 8; it takes an integer of 7 or less)");
}

TEST(Parameters, UnknownName_ListsWhatExistsAndTheNearestSpelling) {
  EXPECT_EQ(error_of("stpes", std::int64_t{1}),
            "lm.toml:7: there is no parameter \"stpes\" (did you mean \"steps\"?); "
            "the program takes model, offset, rate, steps, verbose, warm_up");
  EXPECT_EQ(error_of("momentum", 0.9),
            "lm.toml:7: there is no parameter \"momentum\"; "
            "the program takes model, offset, rate, steps, verbose, warm_up");
  try {
    Parameters parameters({}, {{"steps", {std::int64_t{1}, "--set"}}});
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_STREQ(error.what(), "--set: there is no parameter \"steps\"; the program takes none");
  }
}

// The user finds all three mistakes in one run.
TEST(Parameters, SeveralProblems_AllAreListedByName) {
  EXPECT_EQ(error_of({{"verbose", {std::int64_t{1}, "a.toml:9"}}, {"rate", {2.0, "a.toml:3"}}, {"steps", {true, ""}}}),
            "a.toml:3: parameter \"rate\" is 2.0; it takes a number from 0 to 1\n"
            "parameter \"steps\" is true; it takes an integer from 1 to 100000\n"
            "a.toml:9: parameter \"verbose\" is 1; it takes true or false");
}

TEST(Parameters, ProgramReadsWhatItNeverDeclared_LogicError) {
  const Parameters parameters(specs(), {});
  EXPECT_THROW(parameters.integer("batch"), std::logic_error);
  try {
    parameters.number("steps");
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "the program reads parameter \"steps\" as a number but declared it as an integer");
  }
  EXPECT_THROW(Parameters({{"a", true, ""}, {"a", true, ""}}, {}), std::logic_error);
}

}  // namespace
}  // namespace rehearse
