// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>

namespace rehearse::exec {

// The build id, in hexadecimal, of the executable or library in whose memory `address` lies. Empty if it carries none.
// Does not block.
std::string build_id_at(const void* address);

// The build id of the executable.
std::string executable_build_id();

// The code that the process has loaded now: of each library, and of the executable, its build id, or its file with size
// and time if it carries none. Each once.
std::set<std::string> loaded_code();

}  // namespace rehearse::exec
