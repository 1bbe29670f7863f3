// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/call_site_scope.h>

#include <algorithm>
#include <utility>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::exec {
namespace {

struct AskedFrom {
  std::span<void* const> addresses;
};
const FiberLocal<AskedFrom> asked_from;

}  // namespace

CallSiteScope::CallSiteScope(std::span<void* const> addresses)
    : outer_(std::exchange(asked_from->addresses, addresses)) {}

CallSiteScope::~CallSiteScope() { asked_from->addresses = outer_; }

std::size_t CallSiteScope::copy_to(std::span<void*> out) noexcept {
  const AskedFrom* const scope = asked_from.find();
  if (scope == nullptr) return 0;
  const std::size_t count = std::min(out.size(), scope->addresses.size());
  std::copy_n(scope->addresses.begin(), count, out.begin());
  return count;
}

}  // namespace rehearse::exec
