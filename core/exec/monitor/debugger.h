// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

// The data with which a debugger script (rehearse-gdb.py) finds the fibers of a world. A debugger cannot find them by
// itself, because programs are built without type information, and a fiber's stack is not a thread's. Consists of words
// only, so that the script can read it by position.
extern "C" {

struct RehearseDebuggerTable {
  std::uint64_t version;
  const void* fibers;   // std::vector<Fiber*>; null: the table is empty
  const void* current;  // Fiber*
  // The offsets of these members in a Fiber.
  std::uint64_t rank, fiber_of_rank, state, context, stack_size, stack_top;
};

// The table of the world that began last, on any thread. The end of that world empties it.
extern RehearseDebuggerTable rehearse_debugger_table;

// The debugger calls it to learn what blocks a fiber. The text is valid until the next call.
const char* rehearse_debugger_describe(const void* fiber);

// The innermost frame of the user's code in a language with an interpreter, "step at train.py:41"; empty: none. The
// fiber must be suspended. Valid until the next call.
const char* rehearse_debugger_place(void* fiber);
}

namespace rehearse::exec {

class Fiber;

// The constructor registers a world in the table. The destructor empties the table, unless a later world has taken it.
class DebuggerView {
 public:
  DebuggerView(const void* fibers, const void* current);
  DebuggerView(const DebuggerView&) = delete;
  DebuggerView& operator=(const DebuggerView&) = delete;
  ~DebuggerView();

 private:
  const void* const fibers_;
};

}  // namespace rehearse::exec
