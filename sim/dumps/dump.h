// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

// The flight recorder's dump of one rank, as data. Ranks are ranks of the world unless stated otherwise.
namespace rehearse::sim {

// Dumps cannot be read, or do not belong together. what() names the file and says what is wrong. If a field has a wrong
// value, what() also says which value would be right.
class DumpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DumpedTensor {
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::ScalarType::Undefined;  // older formats do not have it
};

// c10d's description of the group of all ranks.
inline constexpr std::string_view kDefaultGroup = "default_pg";

// More ranks than any job has. A limit, because a report takes memory for each rank.
inline constexpr int kDumpedRanksMost = 1 << 20;

// An entry of the recorder: a call of c10d, a part of coalesced calls, or their end.
struct DumpedCall {
  std::int64_t record_id = 0;
  std::int64_t group_id = 0;  // the key of this group in Dump::enqueued
  std::string group, group_description;
  std::uint64_t collective_seq = 0;
  std::uint64_t p2p_seq = 0;     // for sends and receives
  std::string backend;           // "nccl"
  std::string name;              // "all_reduce", "send", "coalesced"
  int source = -1, target = -1;  // for sends and receives, within the group
  std::vector<DumpedTensor> inputs, outputs;
  bool completed = false;
  std::int64_t time_created_ns = 0;
  std::int64_t timeout_ms = 0;  // 0: the dump does not have it
  std::size_t stack = 0;        // a number from Stacks

  bool is_message() const { return source >= 0; }
  // A receive from any source names its own rank as the source.
  bool is_from_any() const { return is_message() && source == target; }
  bool ends_coalescing() const { return name == "coalesced"; }
  // A send or receive whose peer the dump does not name.
  bool is_unaddressed() const { return !is_message() && (name == "send" || name.starts_with("recv")); }
};

inline bool share_a_rank(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&b](int rank) { return std::ranges::find(b, rank) != b.end(); });
}

struct DumpedGroup {
  std::string name, description;
  std::vector<int> ranks;    // in order of rank in the group, ascending as c10d keeps them
  bool is_disputed = false;  // in a recording of a simulation: the same new_group() made another group on other ranks

  bool has(int rank) const { return std::ranges::find(ranks, rank) != ranks.end(); }
  bool overlaps(const DumpedGroup& other) const { return share_a_rank(ranks, other.ranks); }
};

struct Dump {
  std::string file;
  int rank = -1;
  std::string version;
  std::string library;                                  // version of the calls' library: "2.28.9" for NCCL
  std::string_view library_field = "comm_lib_version";  // the dump's own name for that field
  std::vector<DumpedGroup> groups;                      // groups of the rank that the dump describes
  std::vector<DumpedCall> calls;                        // oldest first
  bool whole = true;                                    // holds all calls from the first one on
  bool filtered = false;                                // completed calls after the first one may be missing
  std::map<std::int64_t, std::int64_t> enqueued;        // by DumpedCall::group_id: the number of the last call

  const DumpedGroup* group_called(const std::string& name) const;
};

}  // namespace rehearse::sim
