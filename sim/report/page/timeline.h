// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rehearse::sim {

// The calls of ranks with their times, in the form in which the page draws them. Plain data, made from a run that has
// just ended, or from a trace.json that a run left. Times are nanoseconds. kNever stands for the time of an event that
// did not happen.
struct Timeline {
  static constexpr std::int64_t kNever = -1;

  struct Group {
    std::string name, description;
    std::vector<int> ranks;
    auto operator<=>(const Group&) const = default;
  };
  struct Signature {
    std::string name;         // "allreduce"
    std::string fingerprint;  // "allreduce(sum, float32[3], cpu)"
    std::string label;        // the payload's name; empty: none, or unknown (a trace has no labels)
    auto operator<=>(const Signature&) const = default;
  };
  enum class CallType : std::uint8_t { collective, send, receive };
  // Calls of one kind differ only in their rank, their number and their times, and in whether they failed.
  struct Kind {
    std::uint32_t group = 0;
    std::uint32_t signature = 0;
    std::uint32_t site = 0;
    CallType type = CallType::collective;
    std::int32_t peer_offset = 0;  // for a message: the peer's rank minus the caller's
    bool any_peer = false;         // for a message: the peer is unknown
    std::int32_t tag = 0;
    auto operator<=>(const Kind&) const = default;
  };
  struct Call {
    std::uint32_t kind = 0;
    std::uint32_t number = 0;  // within its group, from 1; collectives and messages have separate numbers
    std::int64_t created = 0;
    std::int64_t started = kNever;  // when the last rank, or the peer, arrived
    std::int64_t ended = kNever;
    bool failed = false;
    bool operator==(const Call&) const = default;
  };
  // A stretch of a rank's own work, such as "backward of submod_1".
  struct Span {
    std::uint32_t name = 0;
    std::int64_t begin = 0;
    std::int64_t end = kNever;
    bool operator==(const Span&) const = default;
  };
  using Site = std::vector<std::string>;  // the user's lines, innermost first: "train.cpp:41 in step"

  std::vector<Group> groups;
  std::vector<Signature> signatures;
  std::vector<Kind> kinds;
  std::vector<Site> sites{{}};  // the first is for calls from unknown places
  std::vector<std::string> span_names;
  std::vector<std::vector<Call>> calls;      // by rank, in the order of the calls
  std::vector<std::vector<Span>> spans;      // by rank, in the order of their beginnings
  std::uint64_t left_out = 0;                // how many earlier calls are missing
  std::uint64_t spans_left_out = 0;          // how many earlier spans are missing
  std::map<std::string, std::string> files;  // the paths of files in sites: "train.cpp" is "/src/train.cpp"
};

// Keep the latest calls, or spans, of each rank, so that all ranks together have at most `most`. Exception:
// shorten_calls() leaves at least one call to each rank that has calls.
void shorten_calls(Timeline& timeline, std::size_t most);
void shorten_spans(Timeline& timeline, std::size_t most);

}  // namespace rehearse::sim
