// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// A capture cannot go on. what() is complete by itself and begins with the user's line, where it is known:
// `model.cpp:41 in Net::forward: ...`. The program's tensors and modules are unchanged.
class CaptureError : public std::runtime_error {
 public:
  // `where`: looked up now, which may take milliseconds. May be empty.
  CaptureError(const exec::CallSite& where, const std::string& message);

  const exec::CallSite& where() const noexcept { return where_; }

 private:
  exec::CallSite where_;
};

// Code asked for the data of a traced tensor (item, is_nonzero, equal, allclose), which has none.
class DataDependentRead : public CaptureError {
 public:
  // `read`: what was asked, "item", "equal".
  DataDependentRead(const exec::CallSite& where, const std::string& read);

  const std::string& read() const noexcept { return read_; }

 private:
  std::string read_;
};

// Code did something that a graph could not repeat: a custom autograd function, a hook, backward(), data_ptr().
class NotCapturable : public CaptureError {
 public:
  using CaptureError::CaptureError;
};

}  // namespace rehearse::capture
