// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <exception>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/observer.h>

namespace rehearse::comm {

class RankWork;

// The error of a rank whose work has not ended after `limit`. `waiting` describes the blocked call.
TimeoutError timeout_error(const RankWork& work, std::chrono::milliseconds limit, const exec::Observer& waiting);

// Throws the failure of a work. Creates a timeout error anew instead of rethrowing it, so that reports know where the
// rank waited.
[[noreturn]] void throw_failure(const std::exception_ptr& failure, bool timed_out);

}  // namespace rehearse::comm
