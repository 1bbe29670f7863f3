// SPDX-License-Identifier: BSD-3-Clause
// Contract: Fnv1a has the values that its authors publish. Files contain these values, so they must not change.
#include <gtest/gtest.h>

#include <rehearse/hash/word_hash.h>
#include <rehearse_internal/hash/fnv1a.h>

namespace {

using rehearse::fnv1a;

// http://www.isthe.com/chongo/src/fnv/test_fnv.c
TEST(Fnv1a, IsAsPublished) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv1a, TakesNumbersByTheirBytes) {
  rehearse::Fnv1a number;
  number.add_number(0x61);
  EXPECT_EQ(number.value(), fnv1a({"a\0\0\0\0\0\0\0", 8}));
}

TEST(WordHash, KnowsTheOrderOfWordsAndWhereTextsEnd) {
  const auto of = [](const auto&... parts) {
    rehearse::WordHash hash(1);
    (hash.add(parts), ...);
    return hash.value();
  };
  EXPECT_EQ(of(1u, 2u), of(1u, 2u));
  EXPECT_NE(of(1u, 2u), of(2u, 1u));
  EXPECT_NE(of(0u), of(0u, 0u));
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
}

}  // namespace
