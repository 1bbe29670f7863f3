// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::cli {

// The whole command. Returns the process's exit code; does not throw.
int command(int argc, const char* const* argv);

}  // namespace rehearse::cli
