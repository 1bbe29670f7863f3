// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/mismatch.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::comm {
namespace {

constexpr std::size_t kOthersShown = 1;
constexpr std::size_t kSidesNamed = 8;  // how many sides to name by their ranks

template <class Text>
std::string fields_text(const Mismatch& mismatch, const Text& text) {
  std::vector<std::string> parts;
  for (const auto& field : mismatch.fields) parts.push_back(text(field));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> values_after_first(const Mismatch::Field& field) {
  std::vector<std::string> values{field.second};
  values.insert(values.end(), field.others.begin(), field.others.end());
  return values;
}

// The values of the other sides: "[2, 2] and [3]", "[2, 2] and 5 more".
std::string other_values(const Mismatch::Field& field, std::string_view between) {
  if (field.others.size() <= kOthersShown) return fmt::format("{}", fmt::join(values_after_first(field), between));
  return fmt::format("{} and {} more", field.second, field.others.size());
}

// "shape ([4], [2, 2])".
std::string all_values(const Mismatch::Field& field) {
  return fmt::format("{} ({}, {})", field.name, field.first, other_values(field, ", "));
}

// "shape [2, 2] and [3], not [4]". Shows no values for labels, because the calls show them and they may be long.
std::string not_the_first(const Mismatch::Field& field) {
  constexpr std::string_view kBucket = "\"DDP bucket ";
  if (field.name == "label" && field.first.starts_with(kBucket) && field.second.starts_with(kBucket)) {
    return "the DDP buckets hold other parameters, or the same ones in another order: compare how the ranks build "
           "their "
           "models";
  }
  if (field.name == "label") return "label differs";
  return fmt::format("{} {}, not {}", field.name, other_values(field, " and "), field.first);
}

std::string called(const Mismatch::Side& side) {
  return fmt::format("{} called {}", describe_ranks(side.alike), side.fingerprint);
}

// The calls that differ from the first one: two of them, and how many more there are.
template <class Text>
std::string all_but_the_first(const Mismatch& mismatch, std::string_view between, const Text& text) {
  std::string all = text(mismatch.second);
  for (std::size_t i = 0; i < std::min(mismatch.others.size(), kOthersShown); ++i) {
    all += fmt::format("{}{}", between, text(mismatch.others[i]));
  }
  if (mismatch.others.size() > kOthersShown) {
    const auto more = mismatch.others.size() - kOthersShown;
    all += fmt::format(" and {} more call{}", more, more == 1 ? "" : "s");
  }
  return all;
}

// `rank 3 passed {0, 1} while ranks 0-2 passed {0, 1, 2} to new_group #1`.
std::string of_new_group(const Mismatch& mismatch) {
  const auto passed = [](const Mismatch::Side& side) {
    return fmt::format("{} passed {}", describe_ranks(side.alike), side.fingerprint);
  };
  if (mismatch.has_majority) {
    return fmt::format("{} while {} to {}", all_but_the_first(mismatch, " and ", passed), passed(mismatch.first),
                       creation_title(mismatch));
  }
  return fmt::format("{}: {}, {}", creation_title(mismatch), passed(mismatch.first),
                     all_but_the_first(mismatch, ", ", passed));
}

// For an all-to-all whose splits do not match: "rank 1 sends 2 elements to rank 0, which expects 3". The lists in the
// calls are long, and may legitimately differ everywhere else. Empty for other mismatches.
std::string split_first(const Mismatch& mismatch) {
  constexpr std::string_view kSplits = "splits of ";
  constexpr std::string_view kTo = " to ";
  constexpr std::string_view kSends = "sends ";
  constexpr std::string_view kExpects = "expects ";
  if (mismatch.fields.size() != 1) return "";
  const auto& field = mismatch.fields.front();
  std::string_view pair = field.name;
  const auto middle = pair.find(kTo);
  if (!pair.starts_with(kSplits) || middle == pair.npos) return "";
  const bool sender_first = field.first.starts_with(kSends);
  const std::string_view sent = sender_first ? field.first : field.second;
  const std::string_view expected = sender_first ? field.second : field.first;
  return fmt::format("{} {} element{} to {}, which expects {}", pair.substr(kSplits.size(), middle - kSplits.size()),
                     sent, sent == "sends 1" ? "" : "s", pair.substr(middle + kTo.size()),
                     expected.substr(kExpects.size()));
}

// `rank 3 called ... while ranks 0-2 called ... as #7 of group "world": reduce_op max, not sum`.
std::string odd_ones_out(const Mismatch& mismatch) {
  const auto split = split_first(mismatch);
  return fmt::format("{} while {} as #{} of group \"{}\": {}", all_but_the_first(mismatch, " and ", called),
                     called(mismatch.first), mismatch.sequence, mismatch.group,
                     split.empty() ? fields_text(mismatch, not_the_first) : split);
}

// "0 and 1", "0, 1-2 and 3": the ranks of each side. If there are many sides, shows the first ones: "0, 1, 2, 3, 4, 5,
// 6, 7 and 592 more".
std::string all_sides(const Mismatch& mismatch) {
  std::vector<std::string> sides{rank_numbers(mismatch.first.alike), rank_numbers(mismatch.second.alike)};
  std::size_t more = 0;
  for (const auto& side : mismatch.others) {
    if (sides.size() < kSidesNamed) {
      sides.push_back(rank_numbers(side.alike));
    } else {
      more += side.alike.size();
    }
  }
  if (more > 0) sides.push_back(fmt::format("{} more", more));
  const auto last = std::move(sides.back());
  sides.pop_back();
  return fmt::format("{} and {}", fmt::join(sides, ", "), last);
}

}  // namespace

std::string creation_title(const Mismatch& mismatch) {
  if (mismatch.sequence == 0) return fmt::format("new_group() of group \"{}\"", mismatch.group);
  return fmt::format("new_group #{}", mismatch.sequence);
}

std::string to_string(const Mismatch& mismatch) {
  if (mismatch.kind == Mismatch::Kind::new_group) return of_new_group(mismatch);
  if (mismatch.has_majority) return odd_ones_out(mismatch);
  const auto ranks = fmt::format("ranks {} disagree", all_sides(mismatch));
  const auto split = split_first(mismatch);
  const auto differ = split.empty() ? "; they differ in " + fields_text(mismatch, all_values) : "";
  const auto calls = fmt::format("{}{}{}, {}{}", split, split.empty() ? "" : "; ", called(mismatch.first),
                                 all_but_the_first(mismatch, ", ", called), differ);
  if (mismatch.kind == Mismatch::Kind::point_to_point) {
    return fmt::format("{} on group \"{}\": {}", ranks, mismatch.group, calls);
  }
  return fmt::format("{} at #{} of group \"{}\": {}", ranks, mismatch.sequence, mismatch.group, calls);
}

}  // namespace rehearse::comm
