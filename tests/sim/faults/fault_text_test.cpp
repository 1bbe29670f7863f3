// SPDX-License-Identifier: BSD-3-Clause
// Contract: a fault prints as one text, which reads back as the same fault. An error names the field and the value, and
// says what is right.
#include <string>

#include <gtest/gtest.h>

#include <rehearse/sim/fault.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/sim/scenario.h>

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
           "crash rank=3 at=allreduce#12 peers=disconnect restart=5ms",
           "crash rank=3 at=allreduce#12 restart=20us times=2",
           "restart rank=1 after=5ms optional=true",
           "restart rank=1 on=fault#2",
           "exit rank=1 at=#4 status=3",
           "exit rank=1 at=#4 status=3 peers=disconnect restart=5ms",
           "hang rank=1 at=broadcast group=dp",
           "pause rank=1 label=\"layer 1\" for=5ms times=3",
           "slow rank=1 factor=2.5",
           "delay at=send#1 for=100us",
           "skip_collective rank=2 at=barrier#1",
           "fail_op rank=2 p=0.25",
           "corrupt rank=2 at=allreduce with=bit",
           "corrupt rank=2 at=allreduce element=3 fraction=0.5",
           "corrupt at=#1 with=stale",
           "clock_jump rank=1 after=2ms by=-5s",
           "clock_jump rank=1 at=#1 by=1h clock=all",
           "fail_alloc rank=1 at=allreduce#2 bytes=1MiB",
           "reorder rank=0 call=send#2 for=1ms",
           "partition rank=0-1 after=2ms for=5ms from=2-3 way=out",
           "partition rank=0,3 call=send#2",
           "heal after=3ms on=fault#1",
           "lose_key call=set#2 key=epoch times=2",
           "stale_key rank=1 key=\"last epoch\"",
       }) {
    EXPECT_EQ(to_string(parse_fault(text)), text);
    EXPECT_EQ(parse_fault(to_string(parse_fault(text))), parse_fault(text));
  }
}

TEST(FaultText, FallbacksAreLeftOut) {
  EXPECT_EQ(to_string(parse_fault("crash rank=all at=allreduce#1 peers=timeout times=1 optional=false p=1")),
            "crash at=allreduce#1");
}

TEST(FaultText, MistakesNameFieldValueAndRemedy) {
  EXPECT_EQ(error_of(""), "a fault is empty; write it as \"crash rank=3 at=allreduce#12\"");
  EXPECT_EQ(error_of("crush rank=3 at=allreduce#12"),
            "there is no fault \"crush\" (did you mean \"crash\"?); there are crash, exit, hang, pause, slow, delay, "
            "skip_collective, fail_op, corrupt, partition, heal, lose_key, stale_key, clock_jump, fail_alloc, reorder, "
            "restart, disk_full, torn_write, slow_disk");
  EXPECT_EQ(error_of("crash rank=3 at=allreduc#12"),
            "at is \"allreduc#12\" (did you mean \"allreduce#12\"?); it takes a call by its number in its group, as in "
            "allreduce#12, allreduce or #12");
  EXPECT_EQ(error_of("crash rank=3-1 at=#1"), "rank is \"3-1\"; it takes ranks, as in 3, 0,2 or 1-3, or all");
  EXPECT_EQ(error_of("crash rank=3 at=#0"),
            "at is \"#0\"; it takes a call by its number in its group, as in allreduce#12, allreduce or #12");
  EXPECT_EQ(error_of("crash rank=3"), "crash needs to say when: at, call, group, label, after, on or p");
  EXPECT_EQ(error_of("crash rank=3 at=#1 call=#1"),
            "crash has both at and call: give one, they count the same calls differently");
  EXPECT_EQ(error_of("crash rank=3 rank=2 at=#1"), "rank is there twice");
  EXPECT_EQ(error_of("crash 3 at=#1"), "\"3\" is not key=value; write a fault as \"crash rank=3 at=allreduce#12\"");
  EXPECT_EQ(error_of("crash rank=3 at=#1 factor=2"),
            "crash takes no \"factor\"; it takes rank, at, call, group, label, after, on, p, peers, restart, times, "
            "optional");
  EXPECT_EQ(error_of("crash rank=3 at=#1 peers=gone"), "peers is \"gone\"; it takes timeout or disconnect");
  EXPECT_EQ(
      error_of("crash rank=3 at=#1 restart=soon"),
      "restart is \"soon\"; it takes a duration in ns, us, ms, s, min or h, as in 5ms: after the crash or the exit");
  EXPECT_EQ(error_of("exit rank=3 at=#1 restart=876001h"),
            "restart is \"876001h\"; it takes 876000h (100 years) at most");
  EXPECT_EQ(error_of("crash rank=3 after=2562047h"), "after is \"2562047h\"; it takes 876000h (100 years) at most");
  EXPECT_EQ(error_of("pause rank=3 at=#1 for=876000.5h"),
            "for is \"52560030min\"; it takes 876000h (100 years) at most");
  EXPECT_EQ(error_of("restart rank=3"),
            "restart needs a time, as in after=5ms; as part of a crash or an exit, write restart=5ms");
  EXPECT_EQ(error_of("restart rank=3 after=5ms at=#1"),
            "restart comes at a time, or on another fault: it takes rank, after, on and optional alone");
  EXPECT_EQ(error_of("pause rank=3 at=#1"), "pause needs a duration, as in for=5ms");
  EXPECT_EQ(error_of("pause rank=3 at=#1 for=5"),
            "for is \"5\"; it takes a duration in ns, us, ms, s, min or h, as in 5ms");
  EXPECT_EQ(error_of("slow rank=1"), "slow needs a factor, as in factor=2");
  EXPECT_EQ(error_of("slow rank=1 factor=2 at=#1"),
            "slow lasts from the start to the end: it takes rank, factor and optional alone");
  EXPECT_EQ(error_of("hang rank=1 on=1"), "on is \"1\"; it takes another fault by its place among all, as in fault#1");
  EXPECT_EQ(error_of("partition at=#1"), "partition needs the ranks to cut off, as in rank=0-1");
  EXPECT_EQ(error_of("partition rank=0-2 from=2-3 at=#1"), "partition has rank 2 on both sides");
  EXPECT_EQ(error_of("partition rank=0 at=#1 way=up"), "way is \"up\"; it takes both or out or in");
  EXPECT_EQ(error_of("heal"), "heal needs to say when: at, call, group, label, after, on or p");
  EXPECT_EQ(error_of("lose_key after=1ms"), "lose_key needs a key, as in key=epoch");
  EXPECT_EQ(error_of("stale_key key=epoch at=#1"),
            "stale_key takes no \"at\"; it takes rank, call, after, on, p, key, times, optional");
  EXPECT_EQ(error_of("stale_key key=epoch call=allreduce#1"),
            "call is \"allreduce#1\"; it takes a call by its number among the rank's calls of that kind on the key, as "
            "in get#2");
  EXPECT_EQ(error_of("clock_jump at=#1"), "clock_jump needs a duration, as in by=1h or by=-5s");
  EXPECT_EQ(error_of("clock_jump at=#1 by=5"),
            "by is \"5\"; it takes a duration in ns, us, ms, s, min or h, as in 1h or -5s");
  EXPECT_EQ(error_of("clock_jump at=#1 by=-5s clock=all"),
            "clock_jump of all clocks is by a duration above 0: the monotonic one never goes back");
  EXPECT_EQ(error_of("corrupt at=#1 with=stale element=1"),
            "corrupt with=stale leaves the whole output as it was: it takes no element and no fraction");
  EXPECT_EQ(error_of("corrupt at=#1 fraction=0"), "fraction is \"0\"; it takes a number above 0, at most 1");
  EXPECT_EQ(error_of("fail_alloc at=#1 bytes=0B"), "bytes is \"0B\"; it takes a size, as in 1MiB");
  EXPECT_EQ(error_of("reorder at=send#1"), "reorder needs a duration, as in for=5ms");
  EXPECT_EQ(error_of("fail_op p=2"), "p is \"2\"; it takes a probability above 0, at most 1");
  EXPECT_EQ(error_of("hang label=\"layer 1"), R"("hang label=\"layer 1" has a quote that does not end)");
}

TEST(FaultText, UnknownCall_GetsASuggestion) {
  EXPECT_EQ(error_of("crash rank=3 call=all_reduce").find("call is \"all_reduce\" (did you mean \"allreduce\"?); "),
            0u);
  EXPECT_EQ(error_of("crash rank=3 at=gemm#1").find("at is \"gemm#1\"; it takes a call"), 0u);
  EXPECT_EQ(error_of("lose_key key=a call=ste#2").find("call is \"ste#2\" (did you mean \"set#2\"?); "), 0u);
}

TEST(FaultText, CallThatTheVerbIsNotFor_IsRefused) {
  EXPECT_EQ(error_of("corrupt at=barrier#1"), "at is \"barrier#1\"; corrupt takes a call that brings data");
  EXPECT_EQ(error_of("corrupt call=send"), "call is \"send\"; corrupt takes a call that brings data");
  EXPECT_EQ(error_of("skip_collective rank=1 at=send#1"),
            "at is \"send#1\"; skip_collective takes a collective, not a message");
  EXPECT_EQ(error_of("reorder at=recv#1 for=1ms"), "at is \"recv#1\"; reorder takes a send");
}

TEST(FaultText, OfAnyLength_IsPrintedCut) {
  const std::string many(100'000, 'x'), cut = "\"" + std::string(80, 'x') + "...\"";
  EXPECT_EQ(error_of("crash rank=" + many + " at=#1"),
            "rank is " + cut + "; it takes ranks, as in 3, 0,2 or 1-3, or all");
  for (const std::string text :
       {"", "crash ", "crash at=", "crash at=#1 a", "crash at=#1 a=", "hang label=\"", "hang on="}) {
    EXPECT_LT(error_of(text + many).size(), 400u) << text;
    EXPECT_LT(error_of(text + many + "=1").size(), 400u) << text;
  }
  try {
    World world({.ranks = 2, .faults = {parse_fault("crash rank=3 label=" + many)}});
    FAIL() << "it was taken";
  } catch (const FaultError& error) {
    EXPECT_LT(std::string(error.what()).size(), 400u);
  }
}

}  // namespace
}  // namespace rehearse
