// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>

namespace rehearse::exec {

// The build id, in hexadecimal, of the executable or library that contains `address`. Empty if it has none. Does not
// block.
std::string build_id_at(const void* address);

std::string executable_build_id();

// The code that the process has loaded: for the executable and each library its build id or, without one, its file with
// size and time.
std::set<std::string> loaded_code();

}  // namespace rehearse::exec
