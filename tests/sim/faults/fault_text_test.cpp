// SPDX-License-Identifier: BSD-3-Clause
// Contract: a fault has one text, which reads back as itself, in TOML too; what is wrong with one names field and
// value, and says what is right.
#include <string>

#include <gtest/gtest.h>

#include <rehearse/sim/fault.h>
#include <rehearse/sim/scenario.h>

namespace rehearse {
namespace {

std::string error_of(const std::string& text) {
  try {
    return "taken: " + to_string(parse_fault(text));
  } catch (const FaultError& error) {
    return error.what();
  }
}

TEST(FaultText, ReadsBackAsItself) {
  for (const std::string text : {
           "crash rank=3 at=allreduce#12",
           "crash rank=0,2,4-7 call=_allgather_base#3 peers=disconnect",
           "crash after=2ms optional=true",
           "exit rank=1 at=#4 status=3",
           "hang rank=1 at=broadcast group=dp",
           "pause rank=1 label=\"layer 1\" for=5ms times=3",
           "slow rank=1 factor=2.5",
           "delay at=send#1 for=100us",
           "skip_collective rank=2 at=barrier#1",
           "fail_op rank=2 p=0.25",
           "corrupt rank=2 at=allreduce with=bit",
       }) {
    EXPECT_EQ(to_string(parse_fault(text)), text);
    EXPECT_EQ(parse_fault(to_string(parse_fault(text))), parse_fault(text));
  }
}

TEST(FaultText, FallbacksAreLeftOut) {
  EXPECT_EQ(to_string(parse_fault("crash rank=all at=allreduce#1 peers=timeout times=1 optional=false p=1")),
            "crash at=allreduce#1");
}

TEST(FaultText, MistakesNameFieldValueAndCure) {
  EXPECT_EQ(error_of(""), "a fault is empty; it is as \"crash rank=3 at=allreduce#12\"");
  EXPECT_EQ(error_of("crush rank=3 at=allreduce#12"),
            "there is no fault \"crush\" (did you mean \"crash\"?); there are crash, exit, hang, pause, slow, delay, "
            "skip_collective, fail_op, corrupt");
  EXPECT_EQ(error_of("partition rank=3 at=allreduce#12"),
            "there is no fault \"partition\"; there are crash, exit, hang, pause, slow, delay, skip_collective, "
            "fail_op, corrupt");
  EXPECT_EQ(error_of("crash rank=3 at=allreduc#12"),
            "at is \"allreduc#12\"; it takes a call by its number in its group, as in allreduce#12, allreduce or #12");
  EXPECT_EQ(error_of("crash rank=3-1 at=#1"), "rank is \"3-1\"; it takes ranks, as in 3, 0,2 or 1-3, or all");
  EXPECT_EQ(error_of("crash rank=3 at=#0"),
            "at is \"#0\"; it takes a call by its number in its group, as in allreduce#12, allreduce or #12");
  EXPECT_EQ(error_of("crash rank=3"), "crash does not say when: at, call, group, label, after or p");
  EXPECT_EQ(error_of("crash rank=3 at=#1 call=#1"),
            "crash has both at and call: give one, they count the same calls differently");
  EXPECT_EQ(error_of("crash rank=3 rank=2 at=#1"), "rank is there twice");
  EXPECT_EQ(error_of("crash 3 at=#1"), "\"3\" is no key=value; a fault is as \"crash rank=3 at=allreduce#12\"");
  EXPECT_EQ(error_of("crash rank=3 at=#1 factor=2"),
            "crash takes no \"factor\"; it takes rank, at, call, group, label, after, p, peers, times, optional");
  EXPECT_EQ(error_of("crash rank=3 at=#1 peers=gone"), "peers is \"gone\"; it takes timeout or disconnect");
  EXPECT_EQ(error_of("pause rank=3 at=#1"), "pause says for how long, as in for=5ms");
  EXPECT_EQ(error_of("pause rank=3 at=#1 for=5"),
            "for is \"5\"; it takes a duration in ns, us, ms, s, min or h, as in 5ms");
  EXPECT_EQ(error_of("slow rank=1"), "slow says how much, as in factor=2");
  EXPECT_EQ(error_of("slow rank=1 factor=2 at=#1"),
            "slow lasts from the start to the end: it takes rank, factor and optional alone");
  EXPECT_EQ(error_of("fail_op p=2"), "p is \"2\"; it takes a probability above 0, at most 1");
  EXPECT_EQ(error_of("hang label=\"layer 1"), "\"hang label=\"layer 1\" has a quote that does not end");
}

}  // namespace
}  // namespace rehearse
