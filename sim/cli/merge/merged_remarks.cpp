// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_remarks.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <system_error>

#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::cli {
namespace {

struct Remark {
  std::set<int> ranks;  // the ranks at its beginning; empty: it names none
  std::string_view text;
};

Remark remark_in(std::string_view line) {
  constexpr std::string_view kRank = "rank ", kEnd = ": ";
  if (!line.starts_with(kRank)) return {{}, line};
  const auto number = line.substr(kRank.size());
  int rank = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  const auto rest = number.substr(static_cast<std::size_t>(end - number.data()));
  if (error != std::errc() || !rest.starts_with(kEnd)) return {{}, line};
  return {{rank}, rest.substr(kEnd.size())};
}

std::string text_of(const Remark& remark) {
  if (remark.ranks.empty()) return std::string(remark.text);
  return describe_ranks(std::vector<int>(remark.ranks.begin(), remark.ranks.end())) + ": " + std::string(remark.text);
}

}  // namespace

std::vector<std::string> merged_remarks(const std::vector<std::string>& all) {
  std::vector<Remark> remarks;
  for (const auto& line : all) {
    auto remark = remark_in(line);
    const auto known = std::find_if(remarks.begin(), remarks.end(), [&](const Remark& other) {
      return other.text == remark.text && other.ranks.empty() == remark.ranks.empty();
    });
    if (known == remarks.end()) {
      remarks.push_back(std::move(remark));
    } else {
      known->ranks.merge(remark.ranks);
    }
  }
  std::vector<std::string> lines;
  for (const auto& remark : remarks) lines.push_back(text_of(remark));
  return lines;
}

}  // namespace rehearse::cli
