// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// What all errors about fake tensors have in common. what() is complete by itself: what happened, the user's line
// where it is known, and what to do. The tensors are unchanged.
class FakeError : public std::runtime_error {
 public:
  // `what_happened` is one clause without a full stop; `cure` a sentence.
  FakeError(const std::string& what_happened, std::string cure, exec::CallSite where);

  const std::string& cure() const noexcept { return cure_; }
  const exec::CallSite& where() const noexcept { return where_; }  // of the call at fault; may be empty

 private:
  std::string cure_;
  exec::CallSite where_;
};

// A value was wanted that depends on a fake tensor's data: item(), is_nonzero(), equal(), or an operator whose result's
// size does.
class DataDependentRead : public FakeError {
 public:
  DataDependentRead(std::string operator_name, exec::CallSite where);
  const std::string& operator_name() const noexcept { return operator_name_; }  // "aten::_local_scalar_dense"

 private:
  std::string operator_name_;
};

// The memory of a fake tensor was wanted: data_ptr(), an accessor, printing.
class DataAccess : public FakeError {
 public:
  explicit DataAccess(exec::CallSite where);
};

// A fake tensor was used where no FakeMode is on: it has outlived its capture, or another fiber has got it.
class FakeOutsideMode : public FakeError {
 public:
  FakeOutsideMode(std::string operator_name, exec::CallSite where);
  const std::string& operator_name() const noexcept { return operator_name_; }

 private:
  std::string operator_name_;
};

// Nothing tells what an operator gives: no rule is known, no kernel says so and sampling does not fit.
class UnknownShape : public FakeError {
 public:
  UnknownShape(std::string operator_name, const std::string& reason, exec::CallSite where);
  const std::string& operator_name() const noexcept { return operator_name_; }

 private:
  std::string operator_name_;
};

// Runs `function`. LibTorch's own error about a fake tensor's memory becomes DataAccess, with the line where that is
// known (in a fiber); other exceptions pass.
void with_typed_errors(const std::function<void()>& function);

}  // namespace rehearse::capture
