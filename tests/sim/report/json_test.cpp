// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/json.h"

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

// Contract: values print with the bytes of nlohmann::ordered_json, whatever they contain. A printed text reads back as
// nlohmann::ordered_json reads it.
namespace rehearse::sim {
namespace {

using Reference = nlohmann::ordered_json;

std::string text_of(const Reference& reference, int indentation) {
  return reference.dump(indentation, ' ', false, Reference::error_handler_t::replace);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A random value, as our Json and as nlohmann's.
struct Twins {
  Json own;
  Reference reference;
};

class Garden {
 public:
  Twins grow(int depth) {
    switch (below(depth == 0 ? 6 : 8)) {
      case 0:
        return {};
      case 1:
        return of(below(2) == 1);
      case 2:
        return of(static_cast<std::int64_t>(random_()));
      case 3:
        return of(random_());
      case 4:
        return of(number());
      case 5:
        return of(text());
      case 6:
        return list(depth);
      default:
        return object(depth);
    }
  }

 private:
  template <class T>
  static Twins of(const T& value) {
    return {value, value};
  }

  std::uint64_t below(std::uint64_t count) { return random_() % count; }

  double number() {
    const double numbers[] = {0.0,    -0.0, 1.0,  0.1,   1e15, 1e16, 1e-5,    123456789.125, 1e300,
                              5e-324, -2.5, kNaN, 1e100, 1e21, 100,  1.0 / 3, kInfinity,     -kInfinity};
    return numbers[below(std::size(numbers))];
  }

  // Bytes of all kinds: control characters, quotes, valid and invalid UTF-8.
  std::string text() {
    const std::string parts[] = {
        "a", "\"",     "\\",         "/",    "\n",   "\t",       std::string(1, '\0'), "\x1f",         "\x7f",
        "é", "\u20ac", "\U0001F600", "\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80",       "\xf0\x9f\x98", "\xc0\x80"};
    std::string result;
    for (auto count = below(6); count > 0; --count) result += parts[below(std::size(parts))];
    return result;
  }

  Twins list(int depth) {
    Twins twins{Json::array(), Reference::array()};
    for (auto count = below(4); count > 0; --count) {
      auto item = grow(depth - 1);
      twins.own.push_back(std::move(item.own));
      twins.reference.push_back(std::move(item.reference));
    }
    return twins;
  }

  Twins object(int depth) {
    Twins twins{Json::object(), Reference::object()};
    for (auto count = below(4); count > 0; --count) {
      const auto key = text();
      auto item = grow(depth - 1);
      twins.own[key] = std::move(item.own);
      twins.reference[key] = std::move(item.reference);
    }
    return twins;
  }

  std::mt19937_64 random_{20'240'229};
};

TEST(Json, Text_HasTheBytesOfTheLibrary) {
  Garden garden;
  for (int round = 0; round < 5'000; ++round) {
    const auto twins = garden.grow(4);
    for (const int indentation : {-1, 0, 1, 2}) {
      const auto text = text_of(twins.reference, indentation);
      ASSERT_EQ(json_text(twins.own, indentation), text);
      ASSERT_EQ(json_text(parse_json(text), indentation), text_of(Reference::parse(text), indentation));
    }
  }
}

TEST(Json, Braces_MakeObjectsInTheirOrder) {
  const std::vector<std::vector<std::int64_t>> sizes{{2, 3}, {}};
  const std::map<std::string, std::uint64_t> checks{{"b", 1}, {"a", 2}};
  const Json json{{"z", 1},
                  {"a", {{"name", "x"}, {"none", Json()}}},
                  {"pair", Json::array({"left", "right"})},
                  {"sizes", sizes},
                  {"checks", checks},
                  {"yes", true}};
  EXPECT_EQ(json_text(json), R"({"z":1,"a":{"name":"x","none":null},"pair":["left","right"],"sizes":[[2,3],[]],)"
                             R"("checks":{"a":2,"b":1},"yes":true})");
}

TEST(Json, Get_RefusesOtherTypes) {
  const auto json = parse_json(R"({"text": "a", "small": -3, "large": 18446744073709551615, "half": 0.5,
                                   "list": [1, 2], "yes": true})");
  EXPECT_EQ(json.at("small").get<int>(), -3);
  EXPECT_EQ(json.at("small").get<double>(), -3.0);
  EXPECT_EQ(json.at("large").get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json.at("list").get<std::vector<int>>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(json.at("half").get<double>(), 0.5);
  EXPECT_TRUE(json.at("yes").get<bool>());
  EXPECT_THROW(json.at("text").get<int>(), JsonError);
  EXPECT_THROW(json.at("small").get<std::uint64_t>(), JsonError);
  EXPECT_THROW(json.at("large").get<std::int64_t>(), JsonError);
  EXPECT_THROW(json.at("large").get<int>(), JsonError);
  EXPECT_THROW(json.at("half").get<int>(), JsonError);
  EXPECT_THROW(json.at("yes").get<int>(), JsonError);
  EXPECT_THROW(json.at("list").get<std::vector<std::string>>(), JsonError);
  EXPECT_THROW(json.at("none"), JsonError);
  EXPECT_THROW(json.items(), JsonError);
}

TEST(Json, WhatIsNoJson_SaysWhere) {
  const auto byte_of = [](const std::string& text) {
    try {
      parse_json(text);
      return std::size_t{0};
    } catch (const JsonSyntaxError& error) {
      return error.byte;
    }
  };
  EXPECT_EQ(byte_of("{\"a\": }"), 7u);
  EXPECT_EQ(byte_of("[1] 2"), 5u);
  EXPECT_GT(byte_of(""), 0u);
  EXPECT_GT(byte_of("\"\xff\""), 0u);
  EXPECT_GT(byte_of("1e999"), 0u);
  EXPECT_EQ(byte_of(std::string(500, '[') + std::string(500, ']')), 0u);
  EXPECT_GT(byte_of(std::string(1'000'000, '[')), 0u);
}

TEST(Json, AKeyThatIsGivenTwice_HasItsLastValue) {
  EXPECT_EQ(json_text(parse_json(R"({"a": 1, "b": 2, "a": 3})")), R"({"a":3,"b":2})");
}

// A foreign file may have any number of keys. Comparing each key with all others would take too long.
TEST(Json, OfVeryManyKeys_IsRead) {
  constexpr int kKeys = 300'000;
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i) text += "\"" + std::to_string(i) + "\":[" + std::to_string(i) + "],";
  const auto read = parse_json(text + "\"7\":\"again\"}");
  ASSERT_EQ(read.entries().size(), static_cast<std::size_t>(kKeys));
  EXPECT_EQ(json_text(read.entries()[7].value), "\"again\"");
  EXPECT_EQ(json_text(read.entries().back().value), "[299999]");
}

}  // namespace
}  // namespace rehearse::sim
