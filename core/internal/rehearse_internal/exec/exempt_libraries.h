// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::exec {

// A loaded library, by its path, and in how many places it calls libc's own functions now.
struct ExemptLibrary {
  std::string path;
  std::size_t places = 0;
};

// Gives the loaded libraries whose path `takes` takes libc's own functions, in place of those that suspend ranks: in a
// rank they then block the thread, read the machine's clocks, and start real threads. For libraries that wait for
// threads and devices of their own, with locks held that no other rank must meet (a driver, NCCL). What they call of
// the C++ library is exempt where it waits or starts threads; what they look up by dlsym() is not.
//
// Returns the libraries in which anything was changed, in the order in which they were loaded. It is for those that are
// loaded by now: call it again after a dlopen(), and it changes what has come since. Not undone while a library stays
// loaded. One call at a time, from any thread, inside or outside of ranks; others may run in the libraries meanwhile.
// Blocks for as long as their lists of symbols take (milliseconds). Throws std::system_error, naming the library, when
// the kernel does not let its table be written.
std::vector<ExemptLibrary> exempt_libraries(const std::function<bool(std::string_view path)>& takes);

}  // namespace rehearse::exec
