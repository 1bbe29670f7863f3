// SPDX-License-Identifier: BSD-3-Clause
#include "debugger.h"

#include <string>

#include "exec/fiber/fiber_table.h"

using rehearse::exec::Fiber;

extern "C" {

RehearseDebuggerTable rehearse_debugger_table{1, nullptr, nullptr, 0, 0, 0, 0, 0, 0};

[[gnu::used]] const char* rehearse_debugger_describe(const void* fiber) {
  static std::string text;
  const auto* const observer = static_cast<const Fiber*>(fiber)->observer;
  text = observer == nullptr ? "" : observer->describe();
  return text.c_str();
}
}

namespace rehearse::exec {
namespace {

std::uint64_t offset(const Fiber& fiber, const void* member) {
  return static_cast<std::uint64_t>(static_cast<const char*>(member) - reinterpret_cast<const char*>(&fiber));
}

}  // namespace

DebuggerView::DebuggerView(const void* fibers, const void* current) {
  FiberTable table;
  table.prepare(0, 1);
  const Fiber& fiber = table.add();
  rehearse_debugger_table = {.version = 1,
                             .fibers = fibers,
                             .current = current,
                             .rank = offset(fiber, &fiber.rank),
                             .fiber_of_rank = offset(fiber, &fiber.fiber_of_rank),
                             .state = offset(fiber, &fiber.state),
                             .context = offset(fiber, &fiber.context),
                             .stack_size = offset(fiber, &fiber.stack.size),
                             .stack_top = offset(fiber, &fiber.stack.sp)};
}

DebuggerView::~DebuggerView() { rehearse_debugger_table.fibers = nullptr; }

}  // namespace rehearse::exec
