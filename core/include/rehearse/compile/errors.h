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

// Code that had to run again from its start, because a read gave a value that no branch was compiled for or because it
// cannot be captured behind a read, did something else than before. what() shows the first operators that differ, with
// their lines. What ran before the read has run once.
class NotRepeatable : public CompileError {
 public:
  using CompileError::CompileError;
};

// A tensor that goes from one piece of a compiled function to another (DDP's buckets, reads, eager regions) is not what
// the capture has recorded. what() names the tensor and the line that makes it. The pieces before it have run.
class BorderMismatch : public CompileError {
 public:
  using CompileError::CompileError;
};

// A back end gives, or says that it gives, what its graph does not: another number of outputs, another size or dtype,
// or strides where the output shares memory with something else; with CompileOptions::check_backend also other strides
// than it has stated. what() names the back end, the graph and the output.
class BackendMismatch : public CompileError {
 public:
  using CompileError::CompileError;
};

}  // namespace rehearse::compiler
