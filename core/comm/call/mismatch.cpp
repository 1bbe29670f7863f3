// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/mismatch.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::comm {
namespace {

std::string fields_text(const Mismatch& mismatch) {
  std::vector<std::string> parts;
  for (const auto& field : mismatch.fields) {
    parts.push_back(fmt::format("{} ({}, {})", field.name, field.first, field.second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string to_string(const Mismatch& mismatch) {
  const auto& first = mismatch.first;
  const auto& second = mismatch.second;
  switch (mismatch.kind) {
    case Mismatch::Kind::new_group:
      return fmt::format("new_group #{}: rank {} passed {}, rank {} passed {}", mismatch.sequence, second.rank,
                         second.fingerprint, first.rank, first.fingerprint);
    case Mismatch::Kind::point_to_point:
      return fmt::format("ranks {} and {} disagree on group \"{}\": rank {} called {}, rank {} called {}; they differ in {}",
                         first.rank, second.rank, mismatch.group, first.rank, first.fingerprint, second.rank,
                         second.fingerprint, fields_text(mismatch));
    case Mismatch::Kind::collective:
      break;
  }
  return fmt::format("ranks {} and {} disagree at #{} of group \"{}\": rank {} called {}, rank {} called {}; they differ in {}",
                     first.rank, second.rank, mismatch.sequence, mismatch.group, first.rank, first.fingerprint,
                     second.rank, second.fingerprint, fields_text(mismatch));
}

}  // namespace rehearse::comm
