// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

// Where the last exception of the calling fiber was thrown; empty outside of fibers and when nothing was thrown.
CallSite last_throw();

}  // namespace rehearse::exec
