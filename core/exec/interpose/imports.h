// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <link.h>

namespace rehearse::exec::interpose {

// A shared library of this process at its load address; valid while it stays loaded.
struct LoadedLibrary {
  std::string path;
  ElfW(Addr) base = 0;
  std::vector<ElfW(Phdr)> segments;
};

// All loaded libraries without the executable, in the order in which they were loaded.
std::vector<LoadedLibrary> loaded_libraries();

// An import to replace: `from` is the function that the loader bound, `to` the new one.
struct NewImport {
  const void* from;
  const void* to;
};

// Calls `wanted` for each symbol that the library imports. Writes the new address where the library keeps the address
// of the function, also if the loader has not bound the function yet. Does not change an address that is already bound
// to a function other than `from`. Returns how many addresses it has written. Throws std::system_error if it cannot
// write.
std::size_t rebind_imports(const LoadedLibrary& library,
                           const std::function<std::optional<NewImport>(std::string_view symbol)>& wanted);

}  // namespace rehearse::exec::interpose
