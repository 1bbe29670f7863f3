// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rehearse::sim {

// What ranks did and when, as the page draws it: plain data, so that a page can be made of a run that has just ended
// and of a trace.json that a run left. Times are nanoseconds; kNever: it did not happen.
struct Timeline {
  static constexpr std::int64_t kNever = -1;

  struct Group {
    std::string name, description;
    std::vector<int> ranks;
    auto operator<=>(const Group&) const = default;
  };
  // What calls have in common that do the same.
  struct Signature {
    std::string name;         // "allreduce"
    std::string fingerprint;  // "allreduce(sum, float32[3], cpu)"
    std::string label;        // what the payload is called; empty: nothing
    auto operator<=>(const Signature&) const = default;
  };
  enum class Meets : std::uint8_t { everybody, receiver, sender };  // a collective, a send, a receive
  // Calls of one kind differ in their number and their times alone.
  struct Kind {
    std::uint32_t group = 0;
    std::uint32_t signature = 0;
    std::uint32_t site = 0;
    Meets meets = Meets::everybody;
    std::int32_t peer_offset = 0;  // of a message: the peer's rank less the caller's
    bool any_peer = false;         // of a receive: the peer is not known
    std::int32_t tag = 0;
    auto operator<=>(const Kind&) const = default;
  };
  struct Call {
    std::uint32_t kind = 0;
    std::uint32_t number = 0;  // within its group, collectives and messages apart; from 1
    std::int64_t created = 0;
    std::int64_t started = kNever;  // everybody was there
    std::int64_t ended = kNever;
    bool failed = false;  // how it ended
    bool operator==(const Call&) const = default;
  };
  // A stretch of a rank's own work, as "backward of submod_1".
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
  std::vector<Site> sites{{}};  // the first is of calls whose place is not known
  std::vector<std::string> span_names;
  std::vector<std::vector<Call>> calls;      // by rank, in the order of the calls
  std::vector<std::vector<Span>> spans;      // by rank, in the order of their beginnings
  std::uint64_t left_out = 0;                // earlier calls that are not here
  std::uint64_t spans_left_out = 0;          // and earlier spans
  std::map<std::string, std::string> files;  // where the files lie that sites name: "train.cpp" is "/src/train.cpp"
};

// Leave as many of the latest calls, or spans, of each rank as keep all of them at `most` or below; one call of
// each rank at least.
void shorten_calls(Timeline& timeline, std::size_t most);
void shorten_spans(Timeline& timeline, std::size_t most);

}  // namespace rehearse::sim
