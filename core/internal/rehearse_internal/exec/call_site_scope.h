// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace rehearse::exec {

// While it lives, the calling fiber works on behalf of an earlier call. For example, a compiled graph makes the calls
// that the user's code made during the capture. CallSite::capture() and the sites of exceptions then begin with
// `addresses` and go on with the fiber's own stack. The innermost scope counts. Outside of fibers, a scope applies to
// the thread.
class CallSiteScope {
 public:
  // `addresses`: return addresses, innermost first; they must outlive the scope. Empty: call sites are the fiber's own
  // stack, even inside an outer scope.
  explicit CallSiteScope(std::span<void* const> addresses);
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;
  ~CallSiteScope();

  // Writes the addresses of the fiber's innermost scope to `out`, as many as fit, and returns how many it wrote.
  static std::size_t copy_to(std::span<void*> out) noexcept;

 private:
  const std::span<void* const> outer_;
};

}  // namespace rehearse::exec
