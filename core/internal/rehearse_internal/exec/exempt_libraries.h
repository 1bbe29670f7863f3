// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::exec {

// The path of a loaded library, and through how many imports it now calls libc's own functions.
struct ExemptLibrary {
  std::string path;
  std::size_t imports = 0;
};

// Exempts the loaded libraries for whose path `takes` returns true: from now on, they call libc's own functions instead
// of Rehearse's replacements, which suspend ranks. In a rank, the libraries then block the thread, read the machine's
// clocks and start real threads. Use it for libraries that hold locks while they wait for their own threads and devices
// (a driver, NCCL): if such a wait switched ranks, another rank could block on the lock. Also exempts the libraries'
// calls of functions of the C++ library that wait or start threads. Does not change functions that the libraries look
// up by dlsym().
//
// Returns the libraries that it changed, in the order in which they were loaded. Only affects libraries that are loaded
// now: call it again after a dlopen() to change new ones. A change lasts as long as the library stays loaded. Call it
// from any thread, inside or outside of ranks, but one call at a time; other threads may run in the libraries
// meanwhile. Blocks while it reads their symbol tables (milliseconds). Throws std::system_error, which names the
// library, if the kernel refuses to make the addresses of the library's imports writable.
std::vector<ExemptLibrary> exempt_libraries(const std::function<bool(std::string_view path)>& takes);

}  // namespace rehearse::exec
