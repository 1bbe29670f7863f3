// SPDX-License-Identifier: BSD-3-Clause
#include "python/preload/command.h"

#include <cstdlib>

#include "cli/command.h"

namespace rehearse::python {

int command(int argc, const char* const* argv) { return cli::command(argc, argv); }

}  // namespace rehearse::python

// The package looks for this symbol to see whether the process has preloaded Rehearse.
extern "C" [[gnu::visibility("default")]] void rehearse_is_preloaded() {}

namespace {

// Processes that Python code starts, such as a compiler, need no Rehearse. The launcher keeps the folders of the user
// in the other variable.
[[gnu::constructor]] void leave_children_alone() {
  unsetenv("LD_PRELOAD");
  const char* const folders = getenv("REHEARSE_LIBRARY_PATH");
  if (folders == nullptr) return;
  if (*folders == '\0') {
    unsetenv("LD_LIBRARY_PATH");
  } else {
    setenv("LD_LIBRARY_PATH", folders, 1);
  }
  unsetenv("REHEARSE_LIBRARY_PATH");
}

}  // namespace
