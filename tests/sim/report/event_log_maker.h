// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/operation.h>

#include "comm/record/event_writer.h"

namespace rehearse::sim {

// Fills an event log by hand. Times are in microseconds; -1: never.
class EventLogMaker {
 public:
  explicit EventLogMaker(int ranks) : log({.ranks = ranks, .keep_all = true}) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
    writer.add_group({"world", "default_pg", all});
  }

  static VirtualTime at(std::int64_t microseconds) {
    return microseconds < 0 ? comm::Event::kNever : kTimeZero + std::chrono::microseconds(microseconds);
  }

  comm::Event& add(c10d::OpType type, int rank, std::uint32_t seq_id, std::int64_t created, std::int64_t started,
                   std::int64_t completed, int peer = -1, int tag = 0) {
    comm::Event event;
    event.rank = rank;
    event.seq_id = seq_id;
    event.op_id = seq_id;
    event.time_created = at(created);
    event.time_started = at(started);
    event.time_ended = at(completed);
    event.peer = peer;
    event.tag = tag;
    const auto fingerprint = static_cast<std::uint64_t>(type) + 1;
    event.signature = writer.signature_of(fingerprint, [&] {
      comm::Signature signature;
      signature.type = type;
      signature.name = std::string(comm::name_of(type));
      signature.fingerprint = signature.name + "(float32[2], cpu)";
      signature.input_sizes = {{2}};
      signature.input_dtypes = {at::kFloat};
      signature.timeout = std::chrono::seconds(1);
      return signature;
    });
    return writer.record(event, fingerprint);
  }

  comm::EventLog log;
  comm::EventWriter writer{log};
};

}  // namespace rehearse::sim
