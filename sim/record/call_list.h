// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/comm/event_log.h>

namespace rehearse::sim {

// A call as its fingerprint. Sends and receives also have peer and tag: "send(float32[2], cpu) to rank 1 with tag 0".
std::string call_text(std::string fingerprint, const comm::Signature& kind, const comm::Event& event);

// A communication call in a form that is equal in every mode: without times and devices.
struct ListedCall {
  int rank = -1;
  std::string group;
  std::uint64_t sequence = 0;  // sends and receives have their own count
  bool point_to_point = false;
  std::string call;  // `allreduce(sum, float32[3]) label="fc1.weight"`, "send(float32[3]) to rank 1 with tag 0"
  std::vector<std::string> tensors{};  // all inputs, then all outputs: "in float32[3]", "out float32[3]"

  bool operator==(const ListedCall&) const = default;
};

// The calls that the log keeps, each rank's in its own order.
std::vector<ListedCall> listed_calls(const comm::EventLog& events);

// Writes calls.json: {"rehearse_calls": 1, "calls": [...]}, one call on a line. Does not throw by itself; check the
// state of `out` afterwards.
void write_calls(std::ostream& out, const std::vector<ListedCall>& calls);

// Throws ReportFormatError.
std::vector<ListedCall> calls_from_json(std::string_view text);

}  // namespace rehearse::sim
