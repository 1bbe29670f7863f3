// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace c10 {
class OperatorHandle;
}

namespace rehearse::operators {

// Sees each outermost operator of a fiber once. In place of a composite operator, it sees the operators that the
// composite one calls. Does not see operators on fakes or Meta tensors, operators in a capture, and operators that
// communicate.
class OperatorWatcher {
 public:
  virtual ~OperatorWatcher() = default;

  // True if the watcher does not need to see the next operator. If all watchers are idle, none of them sees `aten::`
  // operators, except _backward(), which runs user code. Otherwise idle watchers are called, too.
  virtual bool is_idle() const noexcept { return false; }

  // Called right before the operator runs. If it throws, the operator's caller gets the exception.
  virtual void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) = 0;

  // Called after the operator has run, unless it threw. May suspend.
  virtual void after(c10::ArrayRef<c10::IValue> results) = 0;

  // Called right before code that pickles, such as torch::save(), reads the tensor's bytes, because that code uses no
  // operator for the read.
  virtual void save(const at::Tensor&) {}
};

// While this object lives, the watchers see the operators of the fiber that made it. Implemented by a boxed fallback at
// a dispatch key above those of autograd and of captures, and below that of GuardedStorages. Without watchers the
// object does nothing. Destroy it in the fiber that made it.
class SeenOperators {
 public:
  using Watchers = std::vector<std::shared_ptr<OperatorWatcher>>;

  // Watchers are called in this order.
  explicit SeenOperators(Watchers watchers);
  SeenOperators(const SeenOperators&) = delete;
  SeenOperators& operator=(const SeenOperators&) = delete;
  ~SeenOperators();

  // The first object of a process registers the fallback, which changes the tables of all operators. A process whose
  // forks run worlds does it once for all of them: a fork takes some 20 ms more, because it copies the tables.
  static void prepare();

 private:
  Watchers watchers_;
  std::optional<c10::impl::IncludeDispatchKeyGuard> key_;
};

// While it lives, the calling fiber's computations do not count as part of its program: no watcher sees them, and the
// memory that they take belongs to no rank (see are_unseen()).
class UnseenOperators {
 public:
  UnseenOperators();
  UnseenOperators(const UnseenOperators&) = delete;
  UnseenOperators& operator=(const UnseenOperators&) = delete;
  ~UnseenOperators();

 private:
  const c10::impl::ExcludeDispatchKeyGuard key_;
};

// True if the calling fiber has a live UnseenOperators.
bool are_unseen();

}  // namespace rehearse::operators
