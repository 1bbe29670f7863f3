// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

namespace rehearse::compiler {

// A function could not be compiled. what() is complete by itself. The cache is as it was before the call.
class CompileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user's code no longer gives the graph that was compiled, although all guards hold: it reads something that no
// guard sees. what() shows the first nodes that differ, with their lines, and says what to do.
class StaleCapture : public CompileError {
 public:
  using CompileError::CompileError;
};

}  // namespace rehearse::compiler
