// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <rehearse/compile/argument_copies.h>
#include <rehearse/compile/argument_sinks.h>
#include <rehearse/compile/callable.h>
#include <rehearse/compile/user_code.h>

namespace rehearse::compiler {

template <class Function>
concept HasOneCallOperator = requires { &Function::operator(); };

// True if the function may have overloads that differ only in the constness or value category of an argument.
template <class Function>
struct IsOverloaded : std::bool_constant<!std::is_pointer_v<Function> && !std::is_function_v<Function> &&
                                         !HasOneCallOperator<Function>> {};

// A key: calls that differ in one of these types have different entries.
template <class Function, class Result, class... Args>
struct CallTypes {};

// The parts of a call's result and arguments that an entry keeps: the result without its tensors and symbolic integers,
// and what the function left in arguments that it changed.
template <class Kept, class... Arguments>
struct CallFrame {
  std::optional<Kept> result;
  std::tuple<std::optional<Arguments>...> left;
};

// The part of TypedCode that does not depend on the function's type, so that functions with equal arguments and results
// share it. `Kept`: the result, or an empty tuple for a function that returns nothing.
template <class Kept, class... Args>
class TypedValues : public UserCode {
 public:
  using Frame = CallFrame<Kept, ArgumentType<Args>...>;

  // `args`: see ArgumentCopies.
  explicit TypedValues(const std::tuple<const ArgumentType<Args>&...>& args) : arguments_(args) {}

  std::vector<std::string> sources(const std::vector<std::string>& names) const override {
    return arguments_.sources(names);
  }
  LeafList leaves_of_arguments() const { return arguments_.leaves(); }

  std::vector<c10::IValue> values() override {
    std::vector<c10::IValue> values;
    for_each_value(
        *kept_, [&](at::Tensor& tensor) { values.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue()); },
        [&](c10::SymInt& number) { values.emplace_back(number); });
    return values;
  }

  std::vector<std::string> constants() override {
    std::vector<std::string> constants;
    for (const Leaf& leaf : leaves_of_result()) {
      if (leaf.kind != LeafKind::Tensor && leaf.kind != LeafKind::SymInt) constants.push_back(text_of(leaf));
    }
    for (std::string& changed : arguments_.changed_constants()) constants.push_back(std::move(changed));
    return constants;
  }

  std::vector<c10d::ProcessGroup*> groups() override {
    std::vector<c10d::ProcessGroup*> groups;
    for (const Leaf& leaf : leaves_of_result()) {
      if (leaf.kind == LeafKind::Group) groups.push_back(leaf.group);
    }
    return groups;
  }

  std::string unrepeatable_argument(const std::vector<std::string>& names) const override {
    return arguments_.unrepeatable(names);
  }
  void change_arguments() const override { arguments_.leave(arguments_.left()); }
  void give_arguments(const RealValue& real) const override { arguments_.give(real); }

  void forget() override {
    arguments_.reset();
    kept_.reset();
  }

  std::shared_ptr<const void> take_frame() override {
    auto frame = std::make_shared<Frame>();
    frame->left = arguments_.left();
    arguments_.reset();
    reset_values(*kept_);
    frame->result = std::move(*kept_);
    kept_.reset();
    return frame;
  }

  // The result of a call that a graph has served. Also puts into the arguments what the function leaves there.
  Kept result_of(const std::shared_ptr<const void>& frame, std::vector<c10::IValue> values) const {
    const Frame& kept_frame = *static_cast<const Frame*>(frame.get());
    arguments_.leave(kept_frame.left);
    Kept kept = *kept_frame.result;
    std::size_t next = 0;
    for_each_value(
        kept,
        [&](at::Tensor& tensor) {
          c10::IValue& value = values[next++];
          if (value.isTensor()) tensor = std::move(value).toTensor();
        },
        [&](c10::SymInt& number) { number = std::move(values[next++]).toSymInt(); });
    return kept;
  }

 protected:
  ArgumentCopies<Args...> arguments_;
  std::optional<Kept> kept_;

 private:
  LeafList leaves_of_result() {
    LeafList leaves;
    LeafSink sink(leaves);
    walk(*kept_, sink);
    return leaves;
  }
};

template <class Function, class... Args>
using ResultOf = std::decay_t<std::invoke_result_t<Function&, GivenType<Args>...>>;

template <class Function, class... Args>
using KeptOf =
    std::conditional_t<std::is_void_v<ResultOf<Function, Args...>>, std::tuple<>, ResultOf<Function, Args...>>;

// UserCode for a function with these arguments, each `T&`, `const T&` or `T&&`.
template <class Function, class... Args>
class TypedCode final : public TypedValues<KeptOf<Function, Args...>, Args...> {
  using Kept = KeptOf<Function, Args...>;

 public:
  TypedCode(Function& function, const std::tuple<const ArgumentType<Args>&...>& args)
      : TypedValues<Kept, Args...>(args), function_(function) {}

  const std::type_info& types() const override {
    if constexpr (IsOverloaded<Function>::value) return typeid(CallTypes<Function, Kept, Args...>);
    return typeid(CallTypes<Function, Kept, ArgumentType<Args>...>);
  }

  std::span<const std::byte> function() const override {
    if constexpr (std::is_object_v<Function> && std::is_invocable_v<const Function&, GivenType<Args>...>) {
      return std::as_bytes(std::span(&function_, 1));
    } else {
      return {};
    }
  }

  const void* end() const noexcept override { return this + 1; }
  bool is_in_function(const void* member) const noexcept override {
    if constexpr (std::is_object_v<Function>) {
      const auto* const object = static_cast<const void*>(&function_);
      return !std::less<>()(member, object) && std::less<>()(member, static_cast<const void*>(&function_ + 1));
    } else {
      return false;
    }
  }

  void run(const StandIns& stand_ins) override {
    this->arguments_.make(stand_ins);
    run_function(std::index_sequence_for<Args...>());
  }

 private:
  template <std::size_t... i>
  void run_function(std::index_sequence<i...>) {
    if constexpr (std::is_void_v<ResultOf<Function, Args...>>) {
      function_(as_given<Args>(this->arguments_.template get<i>())...);
      this->kept_.emplace();
    } else {
      this->kept_.emplace(function_(as_given<Args>(this->arguments_.template get<i>())...));
    }
  }

  Function& function_;
};

template <class Function, class... Args>
struct TypedCaller {
  // Temporaries among the arguments live until call() returns.
  template <class Eagerly>
  static auto call(Callable& callable, Function& function, Eagerly&& eagerly, const ArgumentType<Args>&... args) {
    using Code = TypedCode<Function, Args...>;
    const std::tuple<const ArgumentType<Args>&...> tied(args...);
    Code code(function, tied);
    const LeafList leaves = code.leaves_of_arguments();
    if (std::optional<CallResult> served = callable.call(leaves, code)) {
      using Result = ResultOf<Function, Args...>;
      return static_cast<Result>(code.result_of(served->frame, std::move(served->values)));
    }
    return static_cast<ResultOf<Function, Args...>>(eagerly());
  }
};

// Calls the function through the caches of `callable`.
template <class Function, class... Args>
auto call(Callable& callable, Function& function, Args&&... args) {
  if constexpr (std::is_invocable_v<Function&, GivenType<Args&&>...>) {
    const auto eagerly = [&]() -> decltype(auto) { return function(std::forward<Args>(args)...); };
    return TypedCaller<Function, Args&&...>::call(callable, function, eagerly, in_tree<Args&&>(args)...);
  } else {
    detail::refuse_type<std::tuple<std::decay_t<Args>...>>();
  }
}

}  // namespace rehearse::compiler
