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

// A shared library of this process as the loader has placed it; valid while it stays loaded.
struct LoadedLibrary {
  std::string path;
  ElfW(Addr) base = 0;
  std::vector<ElfW(Phdr)> segments;
};

// All but the executable, in the order in which they were loaded.
std::vector<LoadedLibrary> loaded_libraries();

// In place of `from`, which the loader gave it, an import is to be `to`.
struct NewImport {
  const void* from;
  const void* to;
};

// Asks for each symbol that the library imports what it is to be, and writes that where the library keeps the
// function's address; also where the loader was to find it at the first call only. Addresses that are not `from`
// stay. Returns how many it has written. Throws std::system_error when it cannot be written.
std::size_t rebind_imports(const LoadedLibrary& library,
                           const std::function<std::optional<NewImport>(std::string_view symbol)>& wanted);

}  // namespace rehearse::exec::interpose
