// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/shape_remarks.h"

#include <algorithm>
#include <string>

namespace rehearse::capture {
namespace {

// "x.size(0)", or the symbol itself if it is not the size of an input.
std::string source_of(const shapes::ShapeEnv& shapes, const std::string& symbol) {
  const auto& backed = shapes.backed();
  const auto found =
      std::find_if(backed.begin(), backed.end(), [&](const auto& candidate) { return candidate.name == symbol; });
  return found == backed.end() || found->sources.empty() ? symbol : found->sources.front();
}

}  // namespace

void add_shape_remarks(const shapes::ShapeEnv& shapes, std::vector<Remark>& remarks) {
  for (const shapes::Guard& guard : shapes.guards()) {
    if (!guard.specialises) continue;
    std::string sizes;
    for (const std::string& symbol : guard.condition.symbols()) {
      sizes += (sizes.empty() ? "" : ", ") + source_of(shapes, symbol);
    }
    remarks.push_back(
        {sizes + " is fixed (" + guard.condition.text() + "): C++ code read it as a plain number", guard.where});
  }
}

}  // namespace rehearse::capture
