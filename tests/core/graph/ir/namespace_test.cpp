// SPDX-License-Identifier: BSD-3-Clause
// Names are those of torch.fx, recorded from fx.graph._Namespace and Graph._target_to_str of PyTorch 2.11.
#include <rehearse/graph/namespace.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rehearse::graph {
namespace {

TEST(Namespace, GivesFxsNames) {
  const std::vector<std::pair<std::string, std::string>> recorded = {
      {"x", "x"},
      {"x", "x_1"},
      {"x", "x_2"},
      {"x_1", "x_3"},
      {"x_1", "x_4"},
      {"x_5", "x_5"},
      {"x", "x_6"},
      {"x_3", "x_7"},
      {"add.tensor", "add_tensor"},
      {"add_tensor", "add_tensor_1"},
      {"add_tensor", "add_tensor_2"},
      {"input", "input_1"},
      {"input", "input_2"},
      {"input_1", "input_3"},
      {"sum", "sum_1"},
      {"None", "None"},
      {"device", "device_1"},
      {"if", "if_1"},
      {"2d", "_2d"},
      {"", "_unnamed"},
      {"...", "_"},
      {"a b--c", "a_b_c"},
      {"é", "__1"},
      {"_", "__2"},
      {"_", "__3"},
      {"__", "__"},
      {"a__1", "a__1"},
      {"a__1", "a__2"},
      {"x_0", "x_0"},
      {"x_0", "x_8"},
      {"y_007", "y_007"},
      {"y", "y"},
      {"y_007", "y_1"},
      {"y_8", "y_8"},
      {"foo_1", "foo_1"},
      {"foo", "foo"},
      {"foo", "foo_2"},
      {"foo_1", "foo_3"},
      {"foo_2_3", "foo_2_3"},
      {"foo_2", "foo_4"},
      {"foo_2", "foo_5"},
      {"zip_1", "zip_1"},
      {"zip", "zip_2"},
      {"ValueError", "ValueError_1"},
      {"print_2", "print_2"},
      {"print", "print_3"},
      {"print", "print_4"},
      {"1_1", "_1_1"},
      {"_1", "_1"},
      {"_1", "_1_2"},
      {"a_", "a_"},
      {"a_", "a__3"},
      {"linear", "linear"},
      {"linear", "linear_1"},
      {"linear_1", "linear_2"},
      {"linear", "linear_3"},
  };
  Namespace names;
  for (const auto& [candidate, name] : recorded) {
    EXPECT_EQ(names.create_name(candidate), name) << "for candidate '" << candidate << "'";
    EXPECT_TRUE(names.is_taken(name));
  }
}

TEST(Namespace, ANumberTooLargeToCountOnIsPartOfTheName) {
  Namespace names;
  EXPECT_EQ(names.create_name("x_99999999999999999999"), "x_99999999999999999999");
  EXPECT_EQ(names.create_name("x_99999999999999999999"), "x_99999999999999999999_1");
}

// 20,000 layers ask for the same numbered name. Trying the numbers one by one would take 200 million attempts.
TEST(Namespace, ManyOfOneNumberedName_GoOnWhereTheLastOneStood) {
  Namespace names;
  EXPECT_EQ(names.create_name("layers_0"), "layers_0");
  EXPECT_EQ(names.create_name("layers_7"), "layers_7");
  for (int i = 1; i <= 20'000; ++i) {
    EXPECT_EQ(names.create_name("layers_0"), "layers_" + std::to_string(i < 7 ? i : i + 1));
  }
}

TEST(NameFromTarget, IsFxs) {
  EXPECT_EQ(name_from_target("torch.ops.aten.add.Tensor", true), "add.tensor");
  EXPECT_EQ(name_from_target("torch.ops.aten._assert_scalar.default", true), "_assert_scalar.default");
  EXPECT_EQ(name_from_target("torch.ops.higher_order.cond", true), "cond");
  EXPECT_EQ(name_from_target("_operator.getitem", true), "getitem");
  EXPECT_EQ(name_from_target("torch._C._nn.linear", true), "linear");
  EXPECT_EQ(name_from_target("torch", true), "torch");
  EXPECT_EQ(name_from_target("L_x_", false), "l_x_");
  EXPECT_EQ(name_from_target("pascalCase.ALLCaps", false), "pascal_case.allcaps");
  EXPECT_EQ(name_from_target("__add__", false), "add");
  EXPECT_EQ(name_from_target("___", false), "___");
}

}  // namespace
}  // namespace rehearse::graph
