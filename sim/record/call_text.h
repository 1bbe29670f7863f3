// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/comm/event_log.h>

namespace rehearse::sim {

// A call as its fingerprint. Sends and receives also have peer and tag: "send(float32[2], cpu) to rank 1 with tag 0".
std::string call_text(std::string fingerprint, const comm::Signature& kind, const comm::Event& event);

}  // namespace rehearse::sim
