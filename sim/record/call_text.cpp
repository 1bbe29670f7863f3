// SPDX-License-Identifier: BSD-3-Clause
#include "record/call_text.h"

#include <fmt/format.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::sim {

std::string call_text(std::string fingerprint, const comm::Signature& kind, const comm::Event& event) {
  if (!comm::is_point_to_point(kind.type)) return fingerprint;
  const auto* const direction = kind.type == c10d::OpType::SEND ? "to" : "from";
  const auto peer = event.peer >= 0 ? fmt::format("rank {}", event.peer) : std::string("any rank");
  return fmt::format("{} {} {} with tag {}", fingerprint, direction, peer, event.tag);
}

}  // namespace rehearse::sim
