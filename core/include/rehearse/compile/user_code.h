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

// The result of a call.
struct CallResult {
  std::shared_ptr<const void> frame;  // from take_frame()
  std::vector<c10::IValue> values;    // from values()
};

// One call of a compiled function, without the types of its arguments and result (type erasure). Lives as long as the
// call.
class UserCode {
 public:
  virtual ~UserCode() = default;

  // Identifies the types of the function, its arguments and its result.
  virtual const std::type_info& types() const = 0;

  // The bytes of the function object. Empty if calling may change the object, or if the function is no object.
  virtual std::span<const std::byte> function() const = 0;

  // The end of this object, which has the copies of the arguments.
  virtual const void* end() const noexcept = 0;
  // Whether `member` lies in the function object. Another object of the type may have the next call.
  virtual bool is_in_function(const void* member) const noexcept = 0;

  // Names the source of each leaf of the arguments, in order. `names`: names of the arguments; unnamed ones are arg0,
  // arg1, ...
  virtual std::vector<std::string> sources(const std::vector<std::string>& names) const = 0;

  // Runs the function on copies of the arguments with `stand_ins` in them, and keeps what it returns.
  virtual void run(const StandIns& stand_ins) = 0;

  // Tensors (None for an undefined one) and symbolic integers of the kept result, in order.
  virtual std::vector<c10::IValue> values() = 0;
  // Everything else in the kept result, and in arguments that the function changed, as texts to compare.
  virtual std::vector<std::string> constants() = 0;
  // The process groups in the kept result.
  virtual std::vector<c10d::ProcessGroup*> groups() = 0;
  // The first argument that the function has changed in a way that a later call cannot repeat: it has put in other,
  // more or fewer tensors or symbolic integers, or has changed another value in an argument whose type has no
  // assignment. Empty if there is none. `names`: names of the arguments.
  virtual std::string unrepeatable_argument(const std::vector<std::string>& names) const = 0;
  // After the function has thrown: changes the caller's arguments as the function has changed its copies, except for
  // tensors and symbolic integers.
  virtual void change_arguments() const = 0;
  // After the function has finished on real tensors: as change_arguments(), but changes tensors and symbolic integers,
  // too. `real` returns the real value of a stand-in.
  using RealValue = std::function<c10::IValue(const c10::IValue&)>;
  virtual void give_arguments(const RealValue& real) const = 0;
  // Drops the copies of the arguments and the kept result.
  virtual void forget() = 0;
  // Moves the kept result out, and what the function left in its arguments. The result has the function's return type;
  // its tensors and symbolic integers are left out.
  virtual std::shared_ptr<const void> take_frame() = 0;
};

}  // namespace rehearse::compiler
