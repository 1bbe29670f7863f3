// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

// What a debugger script (rehearse-gdb.py) reads to find the fibers of a world: programs are built without
// type information, and a fiber's stack is not a thread's. Only words, so that it is read by position.
extern "C" {

struct RehearseDebuggerTable {
  std::uint64_t version;
  const void* fibers;   // std::vector<Fiber*>; null: no world has begun
  const void* current;  // Fiber*
  // Where these members lie in a Fiber.
  std::uint64_t rank, fiber_of_rank, state, context, stack_size, stack_top;
};

// The table of the world that began last, in any thread.
extern RehearseDebuggerTable rehearse_debugger_table;

// What a fiber is blocked on, for the debugger to call. Valid until the next call.
const char* rehearse_debugger_describe(const void* fiber);
}

namespace rehearse::exec {

class Fiber;

// Puts a world into the table while it lives.
class DebuggerView {
 public:
  DebuggerView(const void* fibers, const void* current);
  DebuggerView(const DebuggerView&) = delete;
  DebuggerView& operator=(const DebuggerView&) = delete;
  ~DebuggerView();
};

}  // namespace rehearse::exec
