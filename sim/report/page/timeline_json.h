// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <rehearse/exec/time.h>

#include "report/page/timeline.h"
#include "report/writers/json.h"
#include "report/writers/rank_runs.h"

namespace rehearse::sim {

// Nanoseconds, one of each rank; one for all of them where all are equal.
Json rank_times(const std::vector<VirtualTime>& times);

// The timeline as data of a page. Tables are lists; calls and spans are bytes (ByteText) in base64, rank by rank:
//
//   number of calls, and for each of them
//     its kind, doubled, and 1 more unless it has the number after that of the rank's last call to its group
//     then, of those, the distance of the two numbers less 1
//     created, from where the rank's call before it ended (or was created, if it never did)
//     started, from where the first rank of the same collective started; of messages from `created`
//     ended, from where that one did; of messages from `started` or `created`
//
//   of each call that failed, how many others are between it and the one before it ("failed")
//
//   number of spans, and for each its name, its beginning from the end of the one before, its end from its beginning
//
// timeline_data.js reads them. Of a run that would make them longer than `text_most`, a third of that for spans, the
// latest ones of each rank are in it.
Json timeline_json(Timeline timeline, std::size_t text_most);

}  // namespace rehearse::sim
