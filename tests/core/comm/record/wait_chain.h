// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/comm/wait_for_graph.h>

namespace rehearse::comm {

inline std::string chain_text(const std::vector<WaitEdge>& edges) {
  std::string text;
  for (const auto& edge : edges) text += (text.empty() ? "" : " -> ") + to_string(edge);
  return text;
}

}  // namespace rehearse::comm
