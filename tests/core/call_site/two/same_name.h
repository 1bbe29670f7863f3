// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

namespace call_site_two {

[[gnu::noinline]] inline rehearse::exec::CallSite capture() {
  auto site = rehearse::exec::CallSite::capture();
  asm volatile("" ::: "memory");
  return site;
}

}  // namespace call_site_two
