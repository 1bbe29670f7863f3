// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse/exec/time.h>
#include <rehearse/sim/report_writers.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// More than any job has. These limit the memory that a reader takes for ranks.
inline constexpr int kRanksMost = 1 << 24;
inline constexpr std::size_t kRanksInRunsMost = std::size_t{1} << 27;  // in all runs of a file

// Reads one JSON object and knows its path, for errors: `is no report of rehearse: rank_lines[2].state is missing`.
// Members throw ReportFormatError. `object` and the text of `what` must outlive the reader.
class JsonReader {
 public:
  JsonReader(const Json& object, std::string_view what)
      : JsonReader(object, what, "", kRanksMost, std::make_shared<std::size_t>(0)) {}

  template <class T>
  T get(const char* key) const {
    try {
      return member(key).get<T>();
    } catch (const JsonError&) {
      fail(path_of(key), fmt::format("is {}, which is of the wrong type", json_text(member(key)).substr(0, 40)));
    }
  }

  // Returns T() for a missing key, because reports of older versions lack some keys.
  template <class T>
  T get_if_there(const char* key) const {
    return has(key) ? get<T>(key) : T();
  }

  std::uint64_t get_hexadecimal(const char* key) const {
    const auto text = get<std::string>(key);
    std::size_t used = 0;
    try {
      if (text.starts_with("0x")) {
        const std::uint64_t number = std::stoull(text, &used, 16);
        if (used == text.size()) return number;
      }
    } catch (const std::exception&) {  // no number
    }
    fail(path_of(key), fmt::format("is \"{}\" and not a number as in \"0x7\"", text));
  }

  // `named` turns the name into an enumerator, or returns nothing.
  template <class Enum>
  Enum get_named(const char* key, std::optional<Enum> (&named)(std::string_view) noexcept, const char* what) const {
    const auto name = get<std::string>(key);
    if (const auto value = named(name)) return *value;
    fail(path_of(key), fmt::format("is \"{}\", which is no {}", name, what));
  }

  bool has(const char* key) const { return object_.contains(key); }
  bool is_text(const char* key) const { return has(key) && object_.at(key).is_text(); }

  // Also throws if the number does not lie between `least` and `most`.
  template <class T>
  T get_in(const char* key, T least, T most) const {
    const auto value = get<T>(key);
    if (value < least || value > most)
      fail(path_of(key), fmt::format("is {}, and not a number from {} to {}", value, least, most));
    return value;
  }

  VirtualTime get_time(const char* key) const {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    return kTimeZero + VirtualDuration(get_in<std::int64_t>(key, 0, kMost));
  }

  int get_rank(const char* key) const { return rank_at(get<int>(key), path_of(key)); }

  std::vector<int> get_ranks(const char* key) const {
    const auto ranks = get<std::vector<int>>(key);
    for (std::size_t i = 0; i < ranks.size(); ++i) rank_at(ranks[i], fmt::format("{}[{}]", path_of(key), i));
    return ranks;
  }

  // Reads runs as rank_runs() writes them: [0, 2, 5, 5] means 0, 1, 2 and 5.
  std::vector<int> get_rank_runs(const char* key) const {
    const auto runs = get_ranks(key);
    std::vector<int> ranks;
    for (std::size_t i = 0; i < runs.size(); i += 2) {
      if (i + 1 == runs.size() || runs[i] > runs[i + 1] || (!ranks.empty() && runs[i] <= ranks.back()))
        fail(fmt::format("{}[{}]", path_of(key), i), "begins no run; right would be its first and its last rank");
      *in_runs_ += static_cast<std::size_t>(runs[i + 1] - runs[i]) + 1;
      if (*in_runs_ > kRanksInRunsMost)
        fail(fmt::format("{}[{}]", path_of(key), i),
             fmt::format("is a rank too many; right would be at most {} in all runs", kRanksInRunsMost));
      for (int rank = runs[i]; rank <= runs[i + 1]; ++rank) ranks.push_back(rank);
    }
    return ranks;
  }

  // `ranks`: the number of ranks, against which the functions for ranks check numbers.
  JsonReader of_ranks(int ranks) const { return JsonReader(object_, what_, path_, ranks, in_runs_); }

  JsonReader child(const char* key) const { return JsonReader(member(key), what_, path_of(key), ranks_, in_runs_); }

  template <class Read>
  auto get_list(const char* key, const Read& read) const {
    const Json& list = member(key);
    if (!list.is_array()) fail(path_of(key), "is not a list");
    std::vector<decltype(read(*this))> result;
    for (std::size_t i = 0; i < list.items().size(); ++i) {
      const auto path = fmt::format("{}[{}]", path_of(key), i);
      result.push_back(read(JsonReader(list.items()[i], what_, path, ranks_, in_runs_)));
    }
    return result;
  }

  [[noreturn]] void fail_at(const char* key, const std::string& problem) const { fail(path_of(key), problem); }

  [[noreturn]] void fail(const std::string& path, const std::string& problem) const {
    throw ReportFormatError(fmt::format("is no {} of rehearse: {} {}", what_, path, problem));
  }

 private:
  JsonReader(const Json& object, std::string_view what, std::string path, int ranks,
             std::shared_ptr<std::size_t> in_runs)
      : object_(object), what_(what), path_(std::move(path)), ranks_(ranks), in_runs_(std::move(in_runs)) {
    if (!object_.is_object()) fail(path_.empty() ? "the whole" : path_, "is not an object");
  }

  const Json& member(const char* key) const {
    const auto* const found = object_.find(key);
    if (found == nullptr) fail(path_of(key), "is missing");
    return *found;
  }

  std::string path_of(const char* key) const { return path_.empty() ? key : fmt::format("{}.{}", path_, key); }

  int rank_at(int rank, const std::string& path) const {
    if (rank < 0 || rank >= ranks_)
      fail(path, fmt::format("is {}; right would be a rank from 0 to {}, as there are {}", rank, ranks_ - 1, ranks_));
    return rank;
  }

  const Json& object_;
  std::string_view what_;
  std::string path_;
  int ranks_;
  std::shared_ptr<std::size_t> in_runs_;  // how many ranks the file's runs have so far
};

// Parses a text. `what` is the expected kind of text: "report". Throws ReportFormatError.
inline Json parsed_json(std::string_view text, std::string_view what) {
  try {
    return parse_json(text);
  } catch (const JsonSyntaxError& error) {
    throw ReportFormatError(fmt::format("is no {} of rehearse: not JSON, see byte {}", what, error.byte));
  }
}

}  // namespace rehearse::sim
