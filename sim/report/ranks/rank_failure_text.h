// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/cause_text.h"
#include "report/ranks/places.h"

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

// True for a TimeoutError of an operation, and for the c10::DistStoreError of a wait for keys that did not come in
// time.
bool is_timeout(const exec::RankFailure& failure);

// The exception's text without c10's own stack trace, whose addresses differ between processes. Then the texts of
// nested exceptions, each as "caused by: ...".
std::string text_of(const exec::RankFailure& failure);

// Joins one line from each of these texts: the exception's own text, the notes that were added to the exception, and
// the texts of nested exceptions. The line is the first one or, in a text of TorchScript, the one that says what went
// wrong. If the line is long, takes only its first sentences or, if these are too long or too short, its first words.
std::string gist_of(const exec::RankFailure& failure);

// True if the failure is an error that the program seems to have thrown because it had caught a timeout. False if the
// error's text names the call that timed out. Also false if the rank failed later than the timeout, because the program
// had then dealt with the timeout.
bool follows_a_timeout(const exec::RankFailure& failure);

// Names the first two exceptions that were unwinding ranks when the world ended, or when a destructor threw another
// exception: "rank 2 was unwinding an exception, 'disk is full', thrown at train.cpp:69 in save; ". Leaves out
// exceptions of calls that failed and of the world's end. The report shows such a rank in a call that a destructor
// made, and the named exception is the reason why the destructor ran. Empty if there are none.
CauseText unwinding_first(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
