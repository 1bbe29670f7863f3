// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

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

// True for a TimeoutError of an operation, and for every c10::DistStoreError, which stores throw for timeouts.
bool is_timeout(const exec::RankFailure& failure);

// The exception's text without c10's own stack trace, whose addresses differ between processes. Then the texts of
// nested exceptions, each as "caused by: ...".
std::string text_of(const exec::RankFailure& failure);

// Joins the first line of the exception's text, of each note that was added to the exception, and of each nested
// exception. Of a long line, takes the first sentences. Of a text of TorchScript, takes the line that says what went
// wrong.
std::string gist_of(const exec::RankFailure& failure);

// True if a timeout seems to have caused the failure, because a program may catch a timeout and throw an error of its
// own. False if the error's text names the call itself. Also false if the rank failed later than the timeout, because
// the program had then dealt with the timeout.
bool follows_a_timeout(const exec::RankFailure& failure);

}  // namespace rehearse::sim
