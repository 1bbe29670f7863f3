// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <typeinfo>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/failure.h>

namespace rehearse::exec {

// Where the exception that the calling fiber is handling was first thrown; a rethrow does not change it, unless it was
// made by std::make_exception_ptr() and that is its first throw. Call it in a catch block. Empty outside of catch
// blocks, outside of fibers but for KeepThrowSites, and for an exception older than the sixteen newest throws of this
// thread.
CallSite last_throw();

// While it lives, last_throw() knows what this thread throws outside of fibers, too.
class KeepThrowSites {
 public:
  KeepThrowSites() noexcept;
  KeepThrowSites(const KeepThrowSites&) = delete;
  KeepThrowSites& operator=(const KeepThrowSites&) = delete;
  ~KeepThrowSites();
};

// Is told of each exception that is thrown, on its thread, before anything unwinds. `type` is that of the object.
using ThrowObserver = void (*)(void* exception, const std::type_info& type) noexcept;
// One for the process, from now on.
void observe_throws(ThrowObserver observer) noexcept;

// The object as a Base, where a handler for `const Base&` would catch it; else null.
template <class Base>
Base* caught_as(void* exception, const std::type_info& type) noexcept {
  return typeid(Base).__do_catch(&type, &exception, 1) ? static_cast<Base*>(exception) : nullptr;
}

// The exception from which the calling fiber unwinds, of several the last one; nothing when it does not, or when the
// exception is not among the newest throws.
std::optional<Unwinding> exception_under_way();

}  // namespace rehearse::exec
