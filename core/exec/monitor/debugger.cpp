// SPDX-License-Identifier: BSD-3-Clause
#include "debugger.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include <rehearse_internal/exec/interpreter.h>

#include "exec/fiber/fiber.h"

using rehearse::exec::Fiber;

extern "C" {

RehearseDebuggerTable rehearse_debugger_table{1, nullptr, nullptr, 0, 0, 0, 0, 0, 0};

[[gnu::used]] const char* rehearse_debugger_describe(const void* fiber) {
  static std::string text;
  const auto* const observer = static_cast<const Fiber*>(fiber)->observer;
  text = observer == nullptr ? "" : observer->wait().waits_on;
  return text.c_str();
}

[[gnu::used]] const char* rehearse_debugger_place(void* fiber) {
  static std::string text;
  text.clear();
  auto* const interpreter = rehearse::exec::interpreter();
  if (interpreter == nullptr) return text.c_str();
  std::array<void*, 64> addresses{};
  const auto count = interpreter->frames_of(static_cast<Fiber*>(fiber)->image(), addresses);
  for (std::size_t i = 0; i < count && text.empty(); ++i) {
    const auto [frame, users_own] = interpreter->resolve(reinterpret_cast<std::uintptr_t>(addresses[i]));
    const auto* const in = frame.function.empty() ? "" : " at ";
    if (users_own) text = fmt::format("{}{}{}:{}", frame.function, in, frame.file, frame.line);
  }
  return text.c_str();
}
}

namespace rehearse::exec {
namespace {

std::mutex g_table_mutex;  // worlds of several threads begin and end at the same time

}  // namespace

DebuggerView::DebuggerView(const void* fibers, const void* current) : fibers_(fibers) {
  const std::lock_guard lock(g_table_mutex);
  rehearse_debugger_table = {.version = 1,
                             .fibers = fibers,
                             .current = current,
                             .rank = offsetof(Fiber, rank),
                             .fiber_of_rank = offsetof(Fiber, fiber_of_rank),
                             .state = offsetof(Fiber, state),
                             .context = offsetof(Fiber, context),
                             .stack_size = offsetof(Fiber, stack) + offsetof(boost::context::stack_context, size),
                             .stack_top = offsetof(Fiber, stack) + offsetof(boost::context::stack_context, sp)};
}

DebuggerView::~DebuggerView() {
  const std::lock_guard lock(g_table_mutex);
  if (rehearse_debugger_table.fibers == fibers_) rehearse_debugger_table.fibers = nullptr;
}

}  // namespace rehearse::exec
