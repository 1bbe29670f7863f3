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

// A timeout of an operation or of the store.
bool is_timeout(const exec::RankFailure& failure);

// The exception's text, without c10's own stack trace, whose addresses differ from process to process; then those of
// the exceptions nested in it, "caused by: ..." each.
std::string text_of(const exec::RankFailure& failure);

// The text's first line, of a long one its first sentences, and those of the nested exceptions; of TorchScript's the
// line that says what went wrong.
std::string gist_of(const exec::RankFailure& failure);

// "; before that its allreduce #7 on group "world" timed out at 1800 s, missing rank 1": a program may catch the error
// of a timeout and throw one of its own. Empty where it has not, or where calls that completed since say that it had
// dealt with it.
std::string after_a_timeout(const exec::RankFailure& failure, const comm::EventLog& events);

}  // namespace rehearse::sim
