// SPDX-License-Identifier: BSD-3-Clause
#include "report/calls/differences.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace rehearse::sim {

namespace {

constexpr std::size_t kSidesMost = 62;  // besides the first two

// Combines the sides beyond the first kSidesMost into one.
Difference::Side rest_of(const std::vector<comm::Mismatch::Side>& sides) {
  Difference::Side rest;
  for (std::size_t i = kSidesMost; i < sides.size(); ++i)
    rest.ranks.insert(rest.ranks.end(), sides[i].alike.begin(), sides[i].alike.end());
  std::sort(rest.ranks.begin(), rest.ranks.end());
  rest.fingerprint = fmt::format("{} further calls, all different", sides.size() - kSidesMost);
  return rest;
}

}  // namespace

Difference difference_of(const comm::Mismatch& mismatch,
                         c10::function_ref<Place(const comm::Mismatch::Side& side)> where) {
  Difference difference;
  // A new_group() call has no group to name, because it has not made its group.
  const bool of_new_group = mismatch.kind == comm::Mismatch::Kind::new_group;
  const auto call = of_new_group ? comm::creation_title(mismatch) + " " : "";
  const auto side_of = [&](const comm::Mismatch::Side& side) {
    return Difference::Side{side.alike, call + side.fingerprint, where(side)};
  };
  if (!of_new_group) difference.group = mismatch.group;
  // Each side of a message counts its own calls.
  if (mismatch.kind != comm::Mismatch::Kind::point_to_point) difference.sequence = mismatch.sequence;
  difference.first = side_of(mismatch.first);
  difference.second = side_of(mismatch.second);
  for (const auto& side : mismatch.others) {
    if (difference.others.size() == kSidesMost) break;
    difference.others.push_back(side_of(side));
  }
  if (mismatch.others.size() > kSidesMost) difference.others.push_back(rest_of(mismatch.others));
  for (const auto& [name, first, second, others] : mismatch.fields) {
    difference.fields.push_back({name, first, second, others});
  }
  return difference;
}

}  // namespace rehearse::sim
