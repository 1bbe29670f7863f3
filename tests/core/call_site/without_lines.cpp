// SPDX-License-Identifier: BSD-3-Clause
#include "without_lines.h"

#include <functional>

namespace without_lines {
namespace {

[[gnu::noinline]] rehearse::exec::CallSite call(const std::function<rehearse::exec::CallSite()>& work) {
  auto site = work();
  asm volatile("" ::: "memory");
  return site;
}

}  // namespace

rehearse::exec::CallSite in_a_function() {
  return call([] {
    auto site = rehearse::exec::CallSite::capture();
    asm volatile("" ::: "memory");
    return site;
  });
}

rehearse::exec::CallSite in_a_named_function() {
  auto site = rehearse::exec::CallSite::capture();
  asm volatile("" ::: "memory");
  return site;
}

}  // namespace without_lines
