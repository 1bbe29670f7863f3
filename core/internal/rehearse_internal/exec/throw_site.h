// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <typeinfo>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/failure.h>

namespace rehearse::exec {

// The calling fiber handles an exception: returns the place at which that exception was first thrown. A rethrow does
// not change the place. But the first rethrow of an exception made by std::make_exception_ptr() counts as the throw.
// Call it in a catch block. Empty outside of catch blocks, and outside of fibers (unless a KeepThrowSites lives). Also
// empty if the exception is not among the sixteen newest throws and rethrows of this thread.
CallSite last_throw();

// While it lives, last_throw() also knows what this thread throws outside of fibers.
class KeepThrowSites {
 public:
  KeepThrowSites() noexcept;
  KeepThrowSites(const KeepThrowSites&) = delete;
  KeepThrowSites& operator=(const KeepThrowSites&) = delete;
  ~KeepThrowSites();
};

// Called for each thrown exception, on its thread, before unwinding begins.
using ThrowObserver = void (*)(void* exception, const std::type_info& type) noexcept;
// Sets the process's only observer, for good.
void observe_throws(ThrowObserver observer) noexcept;

// Returns the object as a Base if a handler for `const Base&` would catch it; otherwise null.
template <class Base>
Base* caught_as(void* exception, const std::type_info& type) noexcept {
  return typeid(Base).__do_catch(&type, &exception, 1) ? static_cast<Base*>(exception) : nullptr;
}

// Returns the exception that unwinds the calling fiber; if there are several, the last one that was thrown. Leaves
// Unwinding::what empty. Returns nullopt if the fiber does not unwind, or if the exception is not among the newest
// throws.
std::optional<Unwinding> exception_under_way();

}  // namespace rehearse::exec
