// SPDX-License-Identifier: BSD-3-Clause
// Contract: unpacked() gives what packed() got. Other bytes give a value or DamagedBytes, and no large allocation.
#include <rehearse_internal/archive/archive.h>

#include <chrono>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/exec/time.h>

namespace rehearse::archive {
namespace {

enum class Colour : std::uint8_t { red, green };

struct Nothing {
  bool operator==(const Nothing&) const = default;
};

struct Branch {
  std::string name;
  std::vector<Branch> branches = {};
  bool operator==(const Branch&) const = default;
};

struct Everything {
  bool truth = false;
  Colour colour = Colour::red;
  std::int8_t small = 0;
  std::uint64_t large = 0;
  double real = 0;
  std::chrono::milliseconds duration{};
  VirtualTime time{};
  std::string text;
  std::vector<bool> truths;
  std::vector<std::vector<int>> lists;
  std::optional<double> nothing, something;
  std::variant<Nothing, Branch> variant;
  bool operator==(const Everything&) const = default;
};

template <class Archive>
void fields(Archive&, Nothing&) {}
template <class Archive>
void fields(Archive& archive, Branch& branch) {
  archive(branch.name, branch.branches);
}
template <class Archive>
void fields(Archive& archive, Everything& all) {
  archive(all.truth, all.colour, all.small, all.large, all.real, all.duration, all.time, all.text, all.truths,
          all.lists, all.nothing, all.something, all.variant);
  archive.check(all.colour, Colour::green, "colour");
}

Everything everything() {
  return {.truth = true,
          .colour = Colour::green,
          .small = -128,
          .large = ~std::uint64_t{0},
          .real = -0.1,
          .duration = std::chrono::milliseconds(-7),
          .time = kTimeZero + VirtualDuration(5),
          .text = std::string("me\0an \xff", 7),
          .truths = {true, false, true},
          .lists = {{}, {1, -2, 3}},
          .nothing = std::nullopt,
          .something = 2.5,
          .variant = Branch{"root", {{"leaf"}, {"limb", {{"twig"}}}}}};
}

template <class T>
std::string error_of(const std::string& bytes) {
  try {
    unpacked<T>(bytes, "it");
  } catch (const DamagedBytes& error) {
    return error.what();
  }
  return "no error";
}

std::string eight(char first) { return first + std::string(7, '\0'); }

TEST(Archive, ValuesOfAllKinds_ComeThrough) {
  EXPECT_EQ(unpacked<Everything>(packed(everything()), "it"), everything());
  EXPECT_EQ(unpacked<Everything>(packed(Everything{}), "it"), Everything{});
  EXPECT_EQ(unpacked<Nothing>("", "it"), Nothing{});
  EXPECT_TRUE(std::isnan(unpacked<double>(packed(std::numeric_limits<double>::quiet_NaN()), "it")));
}

TEST(Archive, Bytes_AreTheSameOnEveryMachine) {
  EXPECT_EQ(packed(std::vector<int>{1, -1}), eight(2) + eight(1) + std::string(8, '\xff'));
  EXPECT_EQ(packed(std::string("ab")), eight(2) + "ab");
}

TEST(Archive, BytesThatAreCutOffOrLeftOver_AreRefused) {
  const std::string bytes = packed(everything());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(unpacked<Everything>(bytes.substr(0, length), "it"), DamagedBytes) << length;
  }
  EXPECT_EQ(error_of<Everything>(bytes + "x"), "it is damaged: 1 bytes are left over");
  EXPECT_EQ(error_of<int>("abc"), "it is damaged: 3 bytes are left where 8 were to come");
}

TEST(Archive, NumbersThatCannotBe_AreRefused) {
  EXPECT_EQ(error_of<bool>(eight(2)), "it is damaged: 2 is no number of this type");
  EXPECT_EQ(error_of<std::int8_t>(packed(128)), "it is damaged: 128 is no number of this type");
  EXPECT_EQ(error_of<std::vector<Nothing>>(packed(5) + "abc"), "it is damaged: 3 bytes are left for 5 things");
  EXPECT_EQ((error_of<std::variant<int, double>>(packed(-1))), "it is damaged: -1 is no known alternative");
  Everything wrong = everything();
  wrong.colour = static_cast<Colour>(2);
  EXPECT_EQ(error_of<Everything>(packed(wrong)), "it is damaged: 2 is no colour");
}

TEST(Archive, DamagedBytes_GiveAValueOrAnError) {
  const std::string bytes = packed(everything());
  int refused = 0;
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    for (const int value : {0x00, 0x01, 0x40, 0x7F, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[place] = static_cast<char>(value);
      refused += error_of<Everything>(damaged) != "no error";
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace rehearse::archive
