// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse {

// Notes that a check saw the log `file` of REHEARSE_REPLAY, which `program` wrote, and whether the check replayed it.
// If no check replays the log, the test program says so on stderr at its end, because its tests then ran without the
// log. This is no failure: under ctest, each test may be a process of its own.
void note_replay(const std::string& file, const std::string& program, bool taken);

}  // namespace rehearse
