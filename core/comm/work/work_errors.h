// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <exception>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/observer.h>

namespace rehearse::comm {

class RankWork;

// What a rank meets whose work has not ended after `limit`. `waiting` says what is blocked, and for whom.
TimeoutError timeout_error(const RankWork& work, std::chrono::milliseconds limit, const exec::Observer& waiting);

// Throws what a work has failed with. A timeout is thrown here, not only thrown again, so that reports know where the
// rank waited.
[[noreturn]] void throw_failure(const std::exception_ptr& failure, bool timed_out);

}  // namespace rehearse::comm
