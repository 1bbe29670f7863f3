// SPDX-License-Identifier: BSD-3-Clause
// Contract: any facts that one rank sends arrive unchanged at the others. Bytes that no rank could have sent are
// refused.
#include "compile/compiler_collectives/compiler_collectives.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/errors.h>

#include "compile/compiler_collectives/compiler_collectives.h"

namespace rehearse::compiler {
namespace {

using Kind = InputFact::Kind;

InputFacts some_facts() {
  return {{.source = "x", .kind = Kind::Tensor, .dtype = c10::kBFloat16, .sizes = {0, 1, 1LL << 40}},
          {.source = "", .kind = Kind::Tensor, .dtype = c10::kFloat},
          {.source = "n", .kind = Kind::SymInt, .int_value = -3},
          {.source = "k", .kind = Kind::Int, .int_value = std::numeric_limits<std::int64_t>::min()},
          {.source = "r", .kind = Kind::Float, .float_value = -0.1},
          {.source = "f", .kind = Kind::Bool, .int_value = 1},
          {.source = "mode", .kind = Kind::String, .text = std::string("me\0an \xff", 7)},
          {.source = "o", .kind = Kind::None},
          {.source = "pg", .kind = Kind::Group, .text = "world"},
          {.source = "xs[1]", .kind = Kind::Absent}};
}

TEST(InputFacts, AllKinds_ComeThrough) {
  EXPECT_EQ(decode_facts(encode(some_facts())), some_facts());
  EXPECT_EQ(decode_facts(encode(InputFacts{})), InputFacts{});
}

TEST(InputFacts, Floats_KeepTheirBits) {
  const auto bits = [](double value) {
    const InputFacts facts{{.source = "r", .kind = Kind::Float, .float_value = value}};
    return decode_facts(encode(facts)).at(0).float_value;
  };
  EXPECT_TRUE(std::signbit(bits(-0.0)));
  EXPECT_TRUE(std::isnan(bits(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(bits(std::numeric_limits<double>::denorm_min()), std::numeric_limits<double>::denorm_min());
}

TEST(InputFacts, CutShortAnywhere_IsRefused) {
  const auto bytes = encode(some_facts());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(decode_facts(bytes.substr(0, length)), CompileError) << length;
  }
  EXPECT_THAT([&] { decode_facts(bytes + "x"); },
              testing::ThrowsMessage<CompileError>(
                  "what another rank sent about a compilation is damaged: 1 bytes are left over"));
}

TEST(InputFacts, NumbersThatCannotBe_AreRefused) {
  EXPECT_THROW(decode_facts(std::string(8, '\xff')), CompileError);  // a huge number of facts
  auto bytes = encode(InputFacts{{.source = ""}});
  bytes[16] = 99;
  EXPECT_THAT([&] { decode_facts(bytes); }, testing::ThrowsMessage<CompileError>(testing::HasSubstr("99 is no kind")));
}

TEST(CompileOutcomes, ComeThrough) {
  EXPECT_EQ(std::get<GraphHash>(decode_outcome(encode(CompileOutcome(GraphHash{~std::uint64_t{0}})))).value,
            ~std::uint64_t{0});
  EXPECT_EQ(std::get<ErrorText>(decode_outcome(encode(CompileOutcome(ErrorText{""})))).text, "");
  EXPECT_EQ(std::get<ErrorText>(decode_outcome(encode(CompileOutcome(ErrorText{"a\nb"})))).text, "a\nb");
  EXPECT_THROW(decode_outcome(""), CompileError);
  EXPECT_THROW(decode_outcome(encode(CompileOutcome(GraphHash{1})) + "x"), CompileError);
  EXPECT_THAT([] { decode_outcome("\x02\0\0\0\0\0\0\0" + std::string(8, '\0')); }, testing::Throws<CompileError>());
}

TEST(CompileOutcomes, HashesMayDiffer_AnErrorFailsAllRanks) {
  const CollectiveLabel label{"f", "train.cpp:7"};
  EXPECT_EQ(agree({GraphHash{1}, GraphHash{2}}, {0, 1}, label), (std::vector<GraphHash>{{1}, {2}}));
  EXPECT_THAT([&] { agree({GraphHash{1}, ErrorText{"no graph"}, ErrorText{"none"}}, {4, 6, 8}, label); },
              testing::ThrowsMessage<CompileError>("rank 6 could not compile f for the call at train.cpp:7: no graph"));
  EXPECT_THAT([&] { agree({ErrorText{"no graph"}, GraphHash{1}}, {0, 1}, {"f", ""}); },
              testing::ThrowsMessage<CompileError>("rank 0 could not compile f: no graph"));
  EXPECT_THAT(agree({ErrorText{"no graph"}, ErrorText{"none"}}, {0, 1}, label), testing::IsEmpty());
}

}  // namespace
}  // namespace rehearse::compiler
