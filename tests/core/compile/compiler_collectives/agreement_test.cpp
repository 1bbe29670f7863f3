// SPDX-License-Identifier: BSD-3-Clause
// Contract: the ranks exchange facts about their arguments. Each rank absorbs some of the facts, in rank order. Which
// facts a rank absorbs depends only on the facts.
#include "compile/compiler_collectives/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/errors.h>

namespace rehearse::compiler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

InputFact tensor(std::vector<std::int64_t> sizes, c10::ScalarType dtype = c10::kFloat) {
  InputFact fact;
  fact.source = "x";
  fact.kind = InputFact::Kind::Tensor;
  fact.dtype = dtype;
  fact.sizes = std::move(sizes);
  return fact;
}

InputFact length(std::int64_t value) {
  InputFact fact;
  fact.source = "x";
  fact.kind = InputFact::Kind::Other;
  fact.text = "length";
  fact.int_value = value;
  return fact;
}

InputFact integer(std::int64_t value) {
  InputFact fact;
  fact.source = "x";
  fact.kind = InputFact::Kind::Int;
  fact.int_value = value;
  return fact;
}

InputFact sym_int(std::int64_t value) {
  InputFact fact;
  fact.source = "x";
  fact.kind = InputFact::Kind::SymInt;
  fact.int_value = value;
  return fact;
}

TEST(FactsToAbsorb, AreThoseOfAllRanksInTheirOrder) {
  EXPECT_THAT(facts_to_absorb({{tensor({5})}, {tensor({6})}, {tensor({0})}}, {tensor({6})}),
              ElementsAre(tensor({5}), tensor({6}), tensor({0})));
  EXPECT_THAT(facts_to_absorb({{sym_int(3)}, {sym_int(4)}}, {sym_int(4)}), ElementsAre(sym_int(3), sym_int(4)));
  EXPECT_THAT(facts_to_absorb({}, {}), IsEmpty());
}

TEST(FactsToAbsorb, OfAnotherKindDtypeOrNumberOfDimensions_StayTheOthers) {
  const std::vector<InputFacts> all{{tensor({4, 2})}, {tensor({3})}, {tensor({3}, c10::kLong)}, {sym_int(12)}};
  EXPECT_THAT(facts_to_absorb(all, {tensor({4, 2})}), ElementsAre(tensor({4, 2})));
  EXPECT_THAT(facts_to_absorb(all, {tensor({3})}), ElementsAre(tensor({3})));
  EXPECT_THAT(facts_to_absorb(all, {sym_int(12)}), ElementsAre(sym_int(12)));
}

// A std::optional that holds a value has two facts with the same source: its length and the value.
TEST(FactsToAbsorb, BehindALength_AreComparedWithTheOwnValue) {
  const InputFacts mine{length(1), tensor({5})}, none{length(0)};
  EXPECT_THAT(facts_to_absorb({{length(1), tensor({4})}, mine, none}, mine),
              ElementsAre(length(1), tensor({4}), length(1), tensor({5}), length(0)));
  EXPECT_THAT(facts_to_absorb({mine, none}, none), ElementsAre(length(1), length(0)));
}

// If a std::variant is a number on one rank, that rank compiles for each value. So no rank absorbs the sizes of the
// variant's tensor: they stay constants, and the other ranks compile as often as that rank.
TEST(FactsToAbsorb, WhereARankHasAConstant_SizesStayConstantToo) {
  const InputFacts mine{length(0), tensor({5})}, number{length(1), integer(12)};
  EXPECT_THAT(facts_to_absorb({mine, number}, mine), ElementsAre(length(0), length(1)));
  EXPECT_THAT(facts_to_absorb({mine, number}, number), ElementsAre(length(0), length(1), integer(12)));
}

TEST(FactsToAbsorb, WhatOnlyOthersHave_IsTheirView) {
  EXPECT_THAT(facts_to_absorb({{}, {tensor({3})}, {tensor({4})}}, {}), ElementsAre(tensor({3}), tensor({4})));
}

TEST(Agreements, GuardCollectivesWithoutAGroup_AreRefused) {
  CompileOptions options;
  options.name = "f";
  options.guard_collectives = true;
  EXPECT_THAT([&] { Agreement{options}; }, testing::ThrowsMessage<CompileError>(
                                               "'f' is compiled with guard_collectives and without a group: say with "
                                               ".group which ranks compare their guards"));
}

TEST(Agreements, WithoutAGroup_EachRankIsByItself) {
  CompileOptions options;
  options.name = "f";
  Agreement agreement(options);
  for (const auto own : {Ability::run_eagerly, Ability::compile, Ability::serve})
    EXPECT_EQ(agreement.compare(own), own);
  agreement.begin_compile({}, 0);
  EXPECT_TRUE(agreement.commit(GraphHash{1}));
  agreement.begin_compile({}, 0);
  EXPECT_FALSE(agreement.commit(ErrorText{"no graph"}));
}

}  // namespace
}  // namespace rehearse::compiler
