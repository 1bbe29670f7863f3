// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse {

// A check met the log `file` of REHEARSE_REPLAY, which `program` wrote, and took it or not. Where none takes it, the
// test program says so at its end, on stderr: its tests then ran as without the log. No failure, for under ctest each
// test may be a process of its own.
void note_replay(const std::string& file, const std::string& program, bool taken);

}  // namespace rehearse
