// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/argument_sinks.h>

namespace rehearse::compiler {

// What a call gave.
struct CallResult {
  std::shared_ptr<const void> frame;  // as take_frame() gives it
  std::vector<c10::IValue> values;    // as values() gives them
};

// One call of a compiled function, with the types of its arguments and of its result forgotten. Lives while the call
// does.
class UserCode {
 public:
  virtual ~UserCode() = default;

  // Tells the types of the function, its arguments and its result.
  virtual const std::type_info& types() const = 0;

  // Where the function object lies; empty if its code may change it, or it is none.
  virtual std::span<const std::byte> function() const = 0;

  // Where each leaf of the arguments comes from, in order; `names`: of the arguments, arg0, arg1, ... for the rest.
  virtual std::vector<std::string> sources(const std::vector<std::string>& names) const = 0;

  // Runs the function on copies of the arguments with stand-ins in them; what it returns is kept.
  virtual void run(const StandIns& stand_ins) = 0;

  // Of the kept result: tensors (undefined: none) and symbolic integers, in order.
  virtual std::vector<c10::IValue> values() = 0;
  // All else in it, for comparison.
  virtual std::vector<std::string> constants() = 0;
  // The process groups in the kept result.
  virtual std::vector<c10d::ProcessGroup*> groups() = 0;
  // The first argument that the function has changed through a reference as no later call could: it put in another
  // tensor, more of them or a size. Empty: there is none. `names`: of the arguments.
  virtual std::string unrepeatable_argument(const std::vector<std::string>& names) const = 0;
  // Changes the caller's arguments as the function has changed its copies, but for tensors, where it has thrown.
  virtual void change_arguments() const = 0;
  // The same where the code has run to its end on real tensors: `real` gives what a value of a copy stands for.
  using RealValue = std::function<c10::IValue(const c10::IValue&)>;
  virtual void give_arguments(const RealValue& real) const = 0;
  // Drops the copies of the arguments and the kept result.
  virtual void forget() = 0;
  // The kept result without its tensors and symbolic integers, of the type that the function returns, and what the
  // function left in its arguments; no longer kept.
  virtual std::shared_ptr<const void> take_frame() = 0;
};

}  // namespace rehearse::compiler
