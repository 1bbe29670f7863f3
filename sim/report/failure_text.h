// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>

#include <rehearse/exec/failure.h>

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

// The exception's text, without c10's own stack trace, whose addresses differ from process to process.
std::string text_of(const exec::RankFailure& failure);

// The text's first line; of a long one the first sentence.
std::string gist_of(const exec::RankFailure& failure);

}  // namespace rehearse::sim
