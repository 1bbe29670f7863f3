// SPDX-License-Identifier: BSD-3-Clause
// ShapeNode overrides every virtual function of the installed c10/core/SymNodeImpl.h, or the table here has the reason
// why not.
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

// The functions that ShapeNode leaves to SymNodeImpl, with reasons.
const std::map<std::string, std::string> kNotOverridden = {
    {"is_nested_int", "ragged sizes of nested tensors are no expressions; SymNodeImpl's answer is no"},
    {"nested_int", "as is_nested_int; SymNodeImpl's answer is none"},
    {"nested_int_coeff", "as is_nested_int; SymNodeImpl's answer is none"},
};

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> names(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex); match != std::sregex_iterator(); ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

TEST(SymNodeTable, NamesEachVirtualFunction) {
  const std::string header = text_of_file(REHEARSE_TORCH_INCLUDE "/c10/core/SymNodeImpl.h");
  const std::set<std::string> virtuals = names(header, R"(\n\s*virtual [\w:<> ]+?[ \n]+(\w+)\()");
  const std::string ours = text_of_file(REHEARSE_SOURCE "/core/shapes/env/shape_node.h");
  std::set<std::string> covered = names(ours, R"((\w+)\([^()]*\)\s+override)");
  for (const auto& [name, reason] : kNotOverridden) {
    EXPECT_TRUE(covered.insert(name).second) << name << " is overridden and in the table";
  }
  EXPECT_THAT(covered, testing::ContainerEq(virtuals));
  EXPECT_EQ(virtuals.size(), 62u);
}

}  // namespace
