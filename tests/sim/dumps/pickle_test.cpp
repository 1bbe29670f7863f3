// SPDX-License-Identifier: BSD-3-Clause
// Contract: pickles of plain data become JSON, and pickles that would run code are refused. No bytes crash or hang the
// reader.
#include "dumps/pickle.h"

#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "dump_maker.h"

namespace rehearse::sim {
namespace {

using namespace std::string_literals;

std::string text_of(const std::string& bytes) { return json_text(unpickled(bytes)); }

std::string refused(const std::string& bytes, PickleLimits limits = {}) {
  try {
    unpickled(bytes, limits);
  } catch (const PickleError& error) {
    return error.what();
  }
  return "";
}

TEST(Pickle, OfLibTorch_IsReadBack) {
  const Json value{{"a", Json::array({1, -1, 300, -70000, std::int64_t{1} << 40, true, Json()})},
                   {"b", {{"a", "x"}}},
                   {"c", Json::array({"x", "x"})}};
  EXPECT_EQ(text_of(pickled(value)), R"({"a":[1,-1,300,-70000,1099511627776,true,null],"b":{"a":"x"},"c":["x","x"]})");
}

// The output of Python's pickle.dumps(), of protocols 2 and 4.
TEST(Pickle, OfPython_IsReadBack) {
  EXPECT_EQ(text_of("\x80\x02}q\x00(X\x01\x00\x00\x00"
                    "aq\x01K\x05K\x06\x86q\x02X\x01\x00\x00\x00"
                    "bq\x03G?\xf8\0\0\0\0\0\0u."s),
            R"({"a":[5,6],"b":1.5})");
  EXPECT_EQ(text_of("\x80\x04\x95\x15\0\0\0\0\0\0\0}\x94(\x8c\x01"
                    "a\x94]\x94(K\x01N\x88"
                    "e\x8c\x01"
                    "b\x94h\x02u."s),
            R"({"a":[1,null,true],"b":[1,null,true]})");
  EXPECT_EQ(text_of("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff."s), "-1");
  EXPECT_EQ(text_of("\x80\x02\x8a\x00."s), "0");
}

TEST(Pickle, ThatRunsCode_IsRefusedByTheOpcodesName) {
  EXPECT_EQ(
      refused("\x80\x02"
              "cos\nsystem\nX\x02\0\0\0ls\x85R."s),
      "would have Python run code: opcode GLOBAL at byte 2; a dump holds only dicts, lists, texts and numbers, so do "
      "not load this file with Python");
  EXPECT_EQ(refused("\x80\x04\x8c\x02os\x8c\x06system\x93."s).substr(0, 59),
            "would have Python run code: opcode STACK_GLOBAL at byte 14;");
  for (const std::string code : {"R", "b", "i", "o", "P", "Q", "\x81", "\x82", "\x83", "\x84", "\x92"})
    EXPECT_TRUE(refused("\x80\x02NN" + code + ".").starts_with("would have Python run code: opcode ")) << code;
}

TEST(Pickle, Damaged_SaysWhere) {
  EXPECT_EQ(refused(""), "ends in the middle of a value, at byte 0");
  EXPECT_EQ(refused("}."), "begins with opcode 0x7d at byte 0, which no flight recorder writes there");
  EXPECT_EQ(refused("\x80\x02X\xff\0\0\0ab"s), "ends in the middle of a value, at byte 7");
  EXPECT_EQ(refused("\x80\x02."),
            "has too few values for opcode 0x2e at byte 2, which no flight recorder writes there");
  EXPECT_EQ(refused("\x80\x02}e."), "has no mark for opcode 0x65 at byte 3, which no flight recorder writes there");
  EXPECT_EQ(refused("\x80\x02h\x05."),
            "has nothing in the memo for opcode 0x68 at byte 2, which no flight recorder writes there");
  EXPECT_EQ(refused("\x80\x02}(K\x01K\x02u."), "has a dict with a key that is no text");
  EXPECT_EQ(refused("\x80\x02}.\x80\x02}."), "goes on for 4 bytes behind its end, at byte 4");
  EXPECT_EQ(refused("\x80\x02}(K\x01u."),
            "has a key without a value below opcode 0x75 at byte 6, which no flight recorder writes there");
}

// Each list contains the previous one twice: few bytes, but very many values. A list that contains itself has no end.
TEST(Pickle, ThatGrowsWithoutEnd_IsRefused) {
  std::string bytes = "\x80\x02]"s;
  for (int i = 0; i < 40; ++i) bytes += "\x94](h"s + static_cast<char>(i) + "h"s + static_cast<char>(i) + "e"s;
  EXPECT_EQ(refused(bytes + "."), "holds more values than a dump has");
  EXPECT_EQ(refused("\x80\x02]\x94h\0a."s), "is nested too deep for a dump, or holds itself");
  EXPECT_EQ(refused("\x80\x02(NNNNe."s, {.values = 3}), "holds more than 3 values");
  const auto thrice =
      "\x80\x02](X\x04\0\0\0"
      "abcd\x94h\0h\0e."s;
  EXPECT_EQ(refused(thrice, {.texts = 11}), "holds longer texts than a dump has");
  EXPECT_EQ(refused(thrice, {.texts = 12}), "");
}

std::string recorded(const std::string& name) {
  std::ifstream in(std::string(RECORDED_DUMPS) + "/" + name, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

// Property: a dump with changed, removed or added bytes is read, or refused with a sentence.
TEST(Pickle, Mutated_NeverCrashesOrHangs) {
  const auto whole = recorded("nccl_skip/dump_rank_0");
  ASSERT_GT(whole.size(), 5000u);
  std::mt19937 random(7);
  const auto below = [&random](std::size_t most) { return random() % most; };
  int refused_ones = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = whole;
    for (auto changes = 1 + below(4); changes > 0; --changes) {
      const auto at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + below(40));
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(100)));
      }
    }
    const auto why = refused(bytes, {.values = 100000});
    refused_ones += why.empty() ? 0 : 1;
  }
  EXPECT_GT(refused_ones, 5000);
  EXPECT_LT(refused_ones, 20000);
}

}  // namespace
}  // namespace rehearse::sim
