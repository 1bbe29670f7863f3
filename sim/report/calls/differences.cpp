// SPDX-License-Identifier: BSD-3-Clause
#include "report/calls/differences.h"

#include <fmt/format.h>

namespace rehearse::sim {

Difference difference_of(const comm::Mismatch& mismatch,
                         c10::function_ref<std::string(const comm::Mismatch::Side& side)> where) {
  Difference difference;
  // Names no group if the call was to make it.
  const bool of_new_group = mismatch.kind == comm::Mismatch::Kind::new_group;
  const auto call = of_new_group ? fmt::format("new_group #{} ", mismatch.sequence) : "";
  const auto side_of = [&](const comm::Mismatch::Side& side) {
    return Difference::Side{side.alike, call + side.fingerprint, where(side)};
  };
  if (!of_new_group) difference.group = mismatch.group;
  difference.sequence = mismatch.sequence;
  difference.first = side_of(mismatch.first);
  difference.second = side_of(mismatch.second);
  for (const auto& side : mismatch.others) difference.others.push_back(side_of(side));
  for (const auto& [name, first, second, others] : mismatch.fields) {
    difference.fields.push_back({name, first, second, others});
  }
  return difference;
}

}  // namespace rehearse::sim
