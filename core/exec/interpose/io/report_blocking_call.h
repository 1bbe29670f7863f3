// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// Fails the calling rank with BlockingCallError: `rank 2 called poll(), which would block all ranks ...`.
[[noreturn]] void report_blocking_call(Fiber& fiber, const char* call);

}  // namespace rehearse::exec::interpose
