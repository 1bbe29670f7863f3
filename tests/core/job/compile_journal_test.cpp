// SPDX-License-Identifier: BSD-3-Clause
// Contract: the journal tells what each rank last did with a compiled function, and in which calls the ranks differed.
#include <rehearse_internal/job/compile_journal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse::compiler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts(const Journal& journal) {
  std::vector<std::string> texts;
  for (const auto& divergence : divergences(journal)) texts.push_back(to_string(divergence));
  return texts;
}

// Each letter of `calls` is a call: 'c' compiles, 'h' hits the cache.
void play(FunctionRecord& record, const std::string& calls) {
  for (const char call : calls) {
    record.called();
    if (call == 'c') {
      record.compiles(record.compiles().empty() ? "" : "n is " + std::to_string(record.calls()), {});
      record.gives({});
      record.done();
    } else {
      record.hit(0);
    }
  }
}

TEST(FunctionRecords, Text_SaysWhatTheRankDoes) {
  FunctionRecord record("f", 1, true);
  EXPECT_EQ(record.text(), "never called f");
  record.called();
  EXPECT_EQ(record.text(), "ran f uncompiled in call 1");
  record.agrees();
  EXPECT_EQ(record.text(), "is agreeing with the other ranks in call 1 of f");
  record.compiles("", {});
  EXPECT_EQ(record.text(), "compiles f (call 1)");
  record.done();
  EXPECT_EQ(record.text(), "compiled f in call 1");
  record.called();
  record.hit(3);
  EXPECT_EQ(record.text(), "used compiled entry 3 in call 2");
  record.called();
  record.compiles("y is 4, guard y == 3 of entry 0", {});
  EXPECT_EQ(record.text(), "compiles f (call 3: y is 4, guard y == 3 of entry 0)");
  EXPECT_EQ(record.text(true), "compile f (call 3: y is 4, guard y == 3 of entry 0)");
}

TEST(FunctionRecords, Text_OfAnEagerCallSaysSo) {
  FunctionRecord record("f", 1, true);
  play(record, "ch");
  record.called();
  record.agrees();
  record.eager();
  EXPECT_EQ(record.text(), "ran f uncompiled in call 3");
  EXPECT_EQ(record.doing(), FunctionRecord::Doing::Nothing);
  play(record, "h");
  EXPECT_EQ(record.text(), "used compiled entry 0 in call 4");
  record.called();
  record.compiles("n is 3", {});
  record.done();
  record.eager();
  EXPECT_EQ(record.text(), "ran f uncompiled in call 5");
}

TEST(Divergences, CallsThatGoAlike_AreNone) {
  for (const int ranks : {1, 2, 5}) {
    Journal journal;
    for (int rank = 0; rank < ranks; ++rank) play(*journal.add("f", rank, false), "chhch");
    EXPECT_THAT(texts(journal), IsEmpty());
  }
  EXPECT_THAT(texts(Journal()), IsEmpty());
}

TEST(Divergences, RankThatCompilesAlone_IsNamedWithItsCall) {
  Journal journal;
  for (int rank = 0; rank < 3; ++rank) play(*journal.add("f", rank, false), rank == 1 ? "chc" : "chh");
  EXPECT_THAT(texts(journal), ElementsAre("rank 1 alone recompiled f in call 3: n is 3"));
}

TEST(Divergences, RanksThatDidNotRecompile_AreNamedToo) {
  Journal journal;
  for (int rank = 0; rank < 4; ++rank) play(*journal.add("f", rank, false), rank == 1 ? "ch" : "cc");
  EXPECT_THAT(texts(journal), ElementsAre("ranks 0,2-3 recompiled f in call 2 and rank 1 did not: n is 2"));
}

TEST(Divergences, KnowRanksWithoutLaterCalls_AndRanksThatCommunicate) {
  Journal journal;
  for (int rank = 0; rank < 4; ++rank) {
    auto& record = *journal.add("f", rank, false);
    play(record, rank < 2 ? "cc" : "ch");
    if (rank == 1) record.communicates();
    if (rank > 0) play(record, "h");
  }
  const auto found = divergences(journal);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].compiled, ElementsAre(0, 1));
  EXPECT_THAT(found[0].latest, ElementsAre(0));
  EXPECT_TRUE(found[0].communicates);
}

TEST(Divergences, ARank_IsComparedWithTheEntryThatTheOthersUsed) {
  Journal journal;
  for (int rank = 0; rank < 2; ++rank) play(*journal.add("f", rank, false), "cc");
  for (const std::size_t used : {0, 1, 1, 0}) {
    for (int rank = 0; rank < 2; ++rank) {
      journal.functions()[rank]->called();
      if (rank == 0 || journal.functions()[0]->calls() < 6) journal.functions()[rank]->hit(used);
    }
  }
  journal.functions()[1]->compiles("of entry 1", {}, {"of entry 0", "of entry 1"});
  journal.functions()[1]->gives({});
  EXPECT_THAT(texts(journal), ElementsAre("rank 1 alone recompiled f in call 6: of entry 0"));
}

TEST(Divergences, RankThatWasRefused_HasNotCompiled) {
  Journal journal;
  for (int rank = 0; rank < 2; ++rank) play(*journal.add("f", rank, false), "ch");
  auto& record = *journal.functions()[1];
  record.called();
  record.compiles("y is 4", {});
  play(*journal.functions()[0], "h");
  EXPECT_THAT(texts(journal), ElementsAre("rank 1 alone recompiled f in call 3: y is 4"));  // it may hang there
  record.done();
  record.eager();
  EXPECT_THAT(texts(journal), IsEmpty());
}

// A call may compile several segments.
TEST(Divergences, SeveralCompilationsOfACall_AreOne) {
  Journal journal;
  for (int rank = 0; rank < 2; ++rank) play(*journal.add("f", rank, false), "ch");
  auto& record = *journal.functions()[1];
  record.called();
  record.compiles("y is 4", {});
  record.gives({});
  record.compiles("behind a read that gave true", {});
  record.gives({});
  record.communicates();
  record.done();
  journal.functions()[0]->called();
  journal.functions()[0]->hit(0);
  EXPECT_THAT(texts(journal), ElementsAre("rank 1 alone recompiled f in call 3: y is 4"));
  EXPECT_TRUE(divergences(journal)[0].communicates);
}

TEST(Divergences, RanksThatCallLessOften_AreNotCompared) {
  Journal journal;
  play(*journal.add("f", 0, false), "chc");
  play(*journal.add("f", 1, false), "ch");
  EXPECT_THAT(texts(journal), IsEmpty());
}

TEST(Divergences, FunctionsOfOneName_AreDistinguishedByTheirOrder) {
  Journal journal;
  for (int rank = 0; rank < 2; ++rank) {
    play(*journal.add("f", rank, false), "ch");
    play(*journal.add("f", rank, false), rank == 0 ? "cc" : "ch");
  }
  EXPECT_THAT(texts(journal), ElementsAre("rank 0 alone recompiled f in call 2: n is 2"));
}

TEST(Divergences, FunctionsWithCompilerCollectives_AreLeftOut) {
  Journal journal;
  for (int rank = 0; rank < 2; ++rank) play(*journal.add("f", rank, true), rank == 0 ? "chc" : "cch");
  EXPECT_THAT(texts(journal), IsEmpty());
}

TEST(FunctionRecords, OutsideOfWorlds_StandAlone) {
  const auto record = record_function("f", false);
  play(*record, "ch");
  EXPECT_EQ(record->text(), "used compiled entry 0 in call 2");
  EXPECT_EQ(record->rank(), -1);
}

}  // namespace
}  // namespace rehearse::compiler
