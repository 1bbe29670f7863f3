// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

// What one rank's flight recorder dumped, as data. Ranks are ranks of the world unless said otherwise.
namespace rehearse::sim {

struct DumpedTensor {
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::ScalarType::Undefined;  // older formats do not say it
};

// How c10d describes the group of all ranks.
inline constexpr std::string_view kDefaultGroup = "default_pg";

// More than any job has: a report takes memory for each.
inline constexpr int kDumpedRanksMost = 1 << 20;

// An entry of the recorder: a call of c10d, a part of coalesced calls, or their end.
struct DumpedCall {
  std::int64_t record_id = 0;
  std::int64_t group_id = 0;  // by which the rank's own status counts
  std::string group, group_description;
  std::uint64_t collective_seq = 0;
  std::uint64_t p2p_seq = 0;     // of sends and receives
  std::string backend;           // "nccl"
  std::string name;              // "all_reduce", "send", "coalesced"
  int source = -1, target = -1;  // of sends and receives, within the group
  std::vector<DumpedTensor> inputs, outputs;
  bool completed = false;
  std::int64_t time_created_ns = 0;
  std::int64_t timeout_ms = 0;  // 0: the dump does not say it
  std::size_t stack = 0;        // of Stacks

  bool is_message() const { return source >= 0; }
  bool ends_coalescing() const { return name == "coalesced"; }
  // A send or receive of which the dump does not say with whom.
  bool is_unaddressed() const { return !is_message() && (name == "send" || name.starts_with("recv")); }
};

struct DumpedGroup {
  std::string name, description;
  std::vector<int> ranks;  // ascending as c10d keeps them: by rank in the group
};

struct Dump {
  std::string file;
  int rank = -1;
  std::string version;
  std::string library;                                  // that carried the calls, "2.28.9" of NCCL; empty: not said
  std::string_view library_field = "comm_lib_version";  // the dump's own name for it
  std::vector<DumpedGroup> groups;                      // that the rank is in, as far as the dump says it
  std::vector<DumpedCall> calls;                        // oldest first
  bool whole = true;                                    // holds all calls from the first one on
  bool filtered = false;                                // calls that were complete may have been left out in between
  std::map<std::int64_t, std::int64_t> enqueued;  // by DumpedCall::group_id: the number of the last call that was made

  const DumpedGroup* group_called(const std::string& name) const;
};

}  // namespace rehearse::sim
