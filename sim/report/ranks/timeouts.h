// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/failure.h>

// Finds out which of several timeouts a failure comes from, because a program may catch timeouts and go on.
namespace rehearse::sim {

// In the error of a rank that comes to a call after the call has timed out on another rank.
inline constexpr std::string_view kOverBefore = " is over: it timed out on ";

// The wait whose timeout became this failure. Null if there is none: the failure is no timeout, the call had timed out
// on another rank before, or the rank was not waiting when the call timed out. RankFailure::gave_up may be another
// wait, whose timeout the program caught long before.
const exec::GivenUpWait* wait_behind(const exec::RankFailure& failure);

// The ranks for which the timed-out call behind this failure waited, as far as the failure's text names them. A program
// may have caught the timeout and thrown an error of its own with the same text. Ascending; empty: not known.
std::vector<int> given_up_on(const exec::RankFailure& failure);

// If a call has timed out on one rank, another rank that makes the call later fails as well, and its failure may come
// first in the record. Returns the failure of the rank whose wait timed out if `all` has it. If `failure` waited for a
// rank whose own transfer took too long, returns that rank's failure. Otherwise returns `failure` itself.
const exec::RankFailure& root_of_timeout(const exec::RankFailure& failure, const std::vector<exec::RankFailure>& all);

// A destructor may fail while the error of a call unwinds the stack: that of a std::thread that nobody joined calls
// std::terminate(). Then the failures name the destructor's error, and this function puts the errors of timeouts and of
// mismatches in their place.
std::vector<exec::RankFailure> without_destructors(std::vector<exec::RankFailure> failures);

// True if a destructor failed because the end of the world unwound the rank.
bool follows_from_the_end(const exec::RankFailure& failure);

// True if the exception of the failure was unwinding its rank when everything came to a standstill: the run hung then.
bool hung_unwinding(const exec::RankFailure& failure, const exec::RunOutcome& outcome);

// Tells about the destructor if without_destructors() changes the failure; otherwise an empty text.
std::string ended_by(const exec::RankFailure& failure);

}  // namespace rehearse::sim
