// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// Base class of all errors about fake tensors. what() is complete: what happened, the user's line if it is known, and
// what to do. The tensors do not change.
class FakeError : public std::runtime_error {
 public:
  // `what_happened`: one clause without a full stop. `cure`: a sentence.
  FakeError(const std::string& what_happened, std::string cure, exec::CallSite where);

  const std::string& cure() const noexcept { return cure_; }
  const exec::CallSite& where() const noexcept { return where_; }  // the call at fault; may be empty

 private:
  std::string cure_;
  exec::CallSite where_;
};

// The code needs a value that depends on a fake tensor's data: item(), is_nonzero(), equal(), or an operator whose
// result's size depends on data.
class DataDependentRead : public FakeError {
 public:
  DataDependentRead(std::string operator_name, exec::CallSite where);
  const std::string& operator_name() const noexcept { return operator_name_; }  // "aten::_local_scalar_dense"

 private:
  std::string operator_name_;
};

// The code needs the memory of a fake tensor: data_ptr(), an accessor, printing.
class DataAccess : public FakeError {
 public:
  explicit DataAccess(exec::CallSite where);
};

// A fake tensor is used although no FakeMode is on: it has outlived its capture, or another rank got it.
class FakeOutsideMode : public FakeError {
 public:
  FakeOutsideMode(std::string operator_name, exec::CallSite where);
  const std::string& operator_name() const noexcept { return operator_name_; }

 private:
  std::string operator_name_;
};

// The results of an operator on fakes cannot be inferred. Usually the operator has no rule, no Meta kernel helps, and
// sampling finds no expression.
class UnknownShape : public FakeError {
 public:
  UnknownShape(std::string operator_name, const std::string& reason, exec::CallSite where);
  const std::string& operator_name() const noexcept { return operator_name_; }

 private:
  std::string operator_name_;
};

// Code did something during a capture that no graph could repeat. For example, the code called backward() or a custom
// autograd function, or kept a tensor that is not among its results.
class NotCapturable : public FakeError {
 public:
  using FakeError::FakeError;
};

}  // namespace rehearse::capture
