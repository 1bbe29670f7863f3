// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/exec/failure.h>

namespace rehearse::sim {

template <class Error>
bool is_a(const exec::RankFailure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

// True for a timeout of an operation or of the store.
bool is_timeout(const exec::RankFailure& failure);

// The exception's text without c10's own stack trace, whose addresses differ between processes. Then the texts of
// nested exceptions, each as "caused by: ...".
std::string text_of(const exec::RankFailure& failure);

// The text's first line (of a long one, its first sentences), and those of nested exceptions. For TorchScript, the line
// that says what went wrong.
std::string gist_of(const exec::RankFailure& failure);

// For example "; before that its allreduce #7 on group "world" timed out at 1800 s, missing rank 1". A program may
// catch a timeout and throw an error of its own. Empty if the program has not done so, or if calls completed since the
// timeout, which shows that the program had dealt with it.
std::string after_a_timeout(const exec::RankFailure& failure, const comm::EventLog& events);

}  // namespace rehearse::sim
