// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/argument_sinks.h>

namespace rehearse::compiler {

// A struct that compiled functions accept, because visit_fields() lists its fields.
struct Batch {
  at::Tensor ids;
  std::optional<at::Tensor> mask;
  c10::SymInt length = 0;
};
template <class Visit>
void visit_fields(Batch& batch, Visit&& visit) {
  visit("ids", batch.ids);
  visit("mask", batch.mask);
  visit("length", batch.length);
}

namespace {

using ::testing::ElementsAre;

template <class T>
std::vector<std::string> leaves_of(T value) {
  LeafList leaves;
  LeafSink sink(leaves);
  walk(value, sink);
  std::vector<std::string> texts;
  for (const Leaf& leaf : leaves) texts.push_back(text_of(leaf));
  return texts;
}

template <class T>
std::vector<std::string> sources_of(T value) {
  std::vector<std::string> sources;
  SourceSink sink(sources);
  sink.begin("x");
  walk(value, sink);
  return sources;
}

// A device is two leaves: its type and its index.
TEST(Arguments, ScalarsAreLeaves) {
  EXPECT_THAT(leaves_of(std::int64_t{-3}), ElementsAre("-3"));
  EXPECT_THAT(leaves_of(true), ElementsAre("true"));
  EXPECT_THAT(leaves_of(0.5), ElementsAre("0.5"));
  EXPECT_THAT(leaves_of(std::string("mean")), ElementsAre("'mean'"));
  EXPECT_THAT(leaves_of(c10::SymInt(7)), ElementsAre("7"));
  EXPECT_THAT(leaves_of(at::ones({2, 0})), ElementsAre("tensor Float[2, 0]"));
  EXPECT_THAT(leaves_of(at::Tensor()), ElementsAre("undefined tensor"));
  EXPECT_THAT(leaves_of(Group()), ElementsAre("process group"));
  EXPECT_THAT(leaves_of(c10::Device("cuda:1")), ElementsAre("1", "1"));
}

// A container of variable length states its length before its elements. A variant states its alternative before its
// value. Tuples and arrays state nothing.
TEST(Arguments, ContainersTellTheirStructure) {
  EXPECT_THAT(leaves_of(std::vector<std::int64_t>{4, 5}), ElementsAre("length 2", "4", "5"));
  EXPECT_THAT(leaves_of(std::vector<bool>{true}), ElementsAre("length 1", "true"));
  EXPECT_THAT(leaves_of(std::optional<double>()), ElementsAre("length 0"));
  EXPECT_THAT(leaves_of(std::optional<double>(1.5)), ElementsAre("length 1", "1.5"));
  EXPECT_THAT(leaves_of(std::variant<bool, std::string>("a")), ElementsAre("alternative 1", "'a'"));
  EXPECT_THAT(leaves_of(std::tuple(1, std::array{2, 3})), ElementsAre("1", "2", "3"));
  EXPECT_THAT(leaves_of(std::map<std::string, int>{{"a", 1}, {"b", 2}}),
              ElementsAre("length 2", "'a'", "1", "'b'", "2"));
}

TEST(Arguments, SourcesNameTheWay) {
  EXPECT_THAT(sources_of(std::vector<std::vector<int>>{{1}, {2}}),
              ElementsAre("x", "x[0]", "x[0][0]", "x[1]", "x[1][0]"));
  EXPECT_THAT(sources_of(Batch{}), ElementsAre("x.ids", "x.mask", "x.length"));
  EXPECT_THAT(sources_of(std::map<std::string, int>{{"a", 1}}), ElementsAre("x", "x", "x.a"));
}

// Stand-ins replace tensors, and integers that are symbols. Nothing else changes.
TEST(Arguments, StandInsTakeTheirPlaces) {
  Batch batch{at::ones({2}), at::ones({3}), 5};
  StandIns stand_ins{std::vector<at::Tensor>(4), std::vector<c10::SymInt>(4)};
  const at::Tensor other = at::ones({9});
  stand_ins.tensors[2] = other;  // after ids and the length of mask
  StandInSink sink(stand_ins);
  const at::Tensor ids = batch.ids;
  walk(batch, sink);
  EXPECT_TRUE(batch.ids.is_same(ids));
  EXPECT_TRUE(batch.mask->is_same(other));
  EXPECT_EQ(batch.length, 5);
}

TEST(Arguments, DoublesAreComparedByTheirBits) {
  EXPECT_EQ(Leaf::of(std::nan("")).number, Leaf::of(std::nan("")).number);
  EXPECT_NE(Leaf::of(0.0).number, Leaf::of(-0.0).number);
}

}  // namespace
}  // namespace rehearse::compiler
