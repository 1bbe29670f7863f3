// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

// Where the exception that the calling fiber is handling was first thrown; a rethrow does not change it. Call
// it in a catch block. Empty outside of fibers, outside of catch blocks, and for an exception older than the
// eight newest throws of this thread's fibers.
CallSite last_throw();

}  // namespace rehearse::exec
