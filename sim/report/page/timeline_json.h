// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/time.h>

#include "report/page/timeline.h"
#include "report/writers/json.h"
#include "report/writers/rank_groups.h"

namespace rehearse::sim {

// Numbers as bytes, seven bits in each byte, the lowest first; the eighth bit says that more bytes follow.
class ByteText {
 public:
  void add(std::uint64_t number);
  void add_signed(std::int64_t number);  // writes 0, -1, 1, -2 as 0, 1, 2, 3
  // Writes 0 for never; otherwise one more than add_signed() writes for the distance from `base`.
  void add_time(std::int64_t time, std::int64_t base);

  std::string base64() const;

 private:
  std::string bytes_;
};

// Times in nanoseconds, one for each rank; a single one if all are equal.
Json rank_times(const std::vector<VirtualTime>& times);

// The timeline as data of a page. Tables are lists. Calls and spans are bytes (ByteText) in base64, rank by rank:
//
//   number of calls, and for each of them
//     its kind, doubled; plus 1 unless its number follows that of the rank's last collective (or message) on the group
//     if it does not follow: the distance of the two numbers minus 1
//     created, relative to the end of the rank's previous call (or to its creation if it never ended)
//     started, relative to `started` of the first earlier rank whose call of the same collective has started and
//     ended; without such a rank, and for messages: relative to `created`
//     ended, relative to `ended` of that rank; without such a rank, and for messages: relative to `started`, or to
//     `created` if the call never started
//
//   for each call that failed, how many calls lie between it and the failed call before it ("failed")
//
//   number of spans, and for each its name, its beginning relative to the end of the rank's previous span (or to the
//   beginning of that span if it never ended), its end relative to its beginning
//
// timeline_data.js reads these bytes. If they would be longer than `text_most`, or if the spans' bytes alone would be
// longer than a third of it, only the latest calls and spans of each rank remain.
Json timeline_json(Timeline timeline, std::size_t text_most);

}  // namespace rehearse::sim
