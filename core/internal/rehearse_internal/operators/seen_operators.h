// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace c10 {
class OperatorHandle;
}

namespace rehearse::operators {

// Gets each outermost operator of a fiber once, and for a composite operator its parts. It does not get operators on
// fakes, operators in a capture, and operators that communicate.
class OperatorWatcher {
 public:
  virtual ~OperatorWatcher() = default;

  // It need not be told of the next one. Asked before each, so that what nobody wants to know costs little.
  virtual bool is_idle() const noexcept { return false; }

  // Right before the operator runs. What is thrown here, its caller meets.
  virtual void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) = 0;

  // When it has run, unless something was thrown. May suspend.
  virtual void after(c10::ArrayRef<c10::IValue> results) = 0;

  // Right before torch::save(), or another call that pickles, reads the tensor's bytes. No operator does that.
  virtual void save(const at::Tensor&) {}
};

// While it lives, the operators of the fiber that made it are seen: by a boxed fallback at a key above all others but
// that of GuardedStorages, which is in that fiber's key set alone. Without watchers nothing happens. Ends in the fiber
// that made it.
class SeenOperators {
 public:
  // Told in this order; null ones are none. They outlive it.
  SeenOperators(std::initializer_list<OperatorWatcher*> watchers);
  SeenOperators(const SeenOperators&) = delete;
  SeenOperators& operator=(const SeenOperators&) = delete;
  ~SeenOperators();

 private:
  std::vector<OperatorWatcher*> watchers_;
  std::optional<c10::impl::IncludeDispatchKeyGuard> key_;
};

// While it lives, what the calling fiber computes is no part of its program, and nobody is told of it; the memory that
// it takes is nobody's (see are_unseen()).
class UnseenOperators {
 public:
  UnseenOperators();
  UnseenOperators(const UnseenOperators&) = delete;
  UnseenOperators& operator=(const UnseenOperators&) = delete;
  ~UnseenOperators();

 private:
  const c10::impl::ExcludeDispatchKeyGuard key_;
};

// Is the calling fiber in an UnseenOperators?
bool are_unseen();

}  // namespace rehearse::operators
