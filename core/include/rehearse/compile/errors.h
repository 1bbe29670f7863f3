// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

// What a compiled function throws with CompileOptions::fullgraph for code that no graph can hold.
#include <rehearse/capture/errors.h>  // capture::FakeError, capture::NotCapturable
#include <rehearse/shapes/errors.h>   // shapes::ShapeError

namespace rehearse::compiler {

// A function could not be compiled. what() is complete by itself. The call adds no entry to the cache.
class CompileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user's code no longer gives the graph that was compiled, although all guards hold: it reads something that no
// guard sees. what() shows the first nodes that differ, with their lines, or says why the code cannot be captured any
// more. It also says what to do.
class StaleCapture : public CompileError {
 public:
  using CompileError::CompileError;
};

// The code behaved differently when it was run again. It must run again from its start if a read gives a value for
// which no branch was compiled, or if the code after a read cannot be captured. what() shows the first operators that
// differ, with their lines. The code before the read has taken effect once.
class NotRepeatable : public CompileError {
 public:
  using CompileError::CompileError;
};

// A tensor that passes from one piece of a compiled function to another (at DDP's buckets, FSDP's units, reads, eager
// regions) is not what the capture recorded. what() names the tensor and the line that makes it. The pieces before the
// one that gets the tensor have run.
class BorderMismatch : public CompileError {
 public:
  using CompileError::CompileError;
};

// A back end returns or states another number of outputs than its graph has, or another layout for an output whose
// layout is fixed (BackendInput::fixed_layouts). Or it states another size or dtype. With CompileOptions::check_backend
// also: it returns a tensor whose dtype, size, strides or storage offset differ from what it stated or, if it stated
// nothing, from what the graph's operators return. what() names the back end and the graph, and the output if the
// number of outputs is right.
class BackendMismatch : public CompileError {
 public:
  using CompileError::CompileError;
};

}  // namespace rehearse::compiler
