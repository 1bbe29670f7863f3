// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "report/writers/json.h"

namespace rehearse::compiler {
class Journal;
}  // namespace rehearse::compiler

namespace rehearse::sim {

// Data for a page: which ranks compiled which functions, in which of their calls, and why. Ranks with the same facts
// share an entry:
//   [{"name": "step", "ranks": [0, 3], "calls": 9, "uses_collectives": false,
//     "compiles": [{"call": 1, "why": "", "where": ..., "communicates": false}]}]
// "ranks" are runs (rank_runs()). Each compilation has "times_ns", its beginning on each of these ranks (rank_times()),
// unless that is unknown.
Json compiled_functions(const compiler::Journal& journal);

}  // namespace rehearse::sim
