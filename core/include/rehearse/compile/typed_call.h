// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <rehearse/compile/argument_sinks.h>
#include <rehearse/compile/callable.h>
#include <rehearse/compile/user_code.h>

namespace rehearse::compiler {

// An argument as the tree knows it: texts of any kind are std::string, all else is itself.
template <class Arg>
using ArgumentType =
    std::conditional_t<std::is_convertible_v<Arg, std::string_view> && !std::is_same_v<std::decay_t<Arg>, std::string>,
                       std::string, std::decay_t<Arg>>;

// walk() takes values that it may change, and LeafSink and SourceSink change none.
template <class T, class Sink>
void walk_unchanged(const T& value, Sink& sink) {
  walk(const_cast<T&>(value), sink);
}

// Whether the function may change this argument of the caller's: it is no constant and no temporary.
template <class Arg>
inline constexpr bool kIsWritable = std::is_lvalue_reference_v<Arg> && !std::is_const_v<std::remove_reference_t<Arg>> &&
                                    std::is_same_v<std::decay_t<Arg>, ArgumentType<Arg>>;

// A copy of the argument as the function gets the argument itself, so that the same overload is called.
template <class Arg>
decltype(auto) as_given(ArgumentType<Arg>& copy) {
  if constexpr (kIsWritable<Arg>) {
    return (copy);
  } else if constexpr (std::is_lvalue_reference_v<Arg> && std::is_same_v<std::decay_t<Arg>, ArgumentType<Arg>>) {
    return std::as_const(copy);
  } else {
    return std::move(copy);
  }
}

template <class Arg>
using GivenType = decltype(as_given<Arg>(std::declval<ArgumentType<Arg>&>()));

template <class Function>
concept HasOneCallOperator = requires { &Function::operator(); };

// Whether it may matter to the function if an argument is a constant or a temporary: there may be an overload for each.
template <class Function>
struct IsOverloaded : std::bool_constant<!std::is_pointer_v<Function> && !std::is_function_v<Function> &&
                                         !HasOneCallOperator<Function>> {};

// Calls that differ in one of these types have different entries.
template <class Function, class Result, class... Args>
struct CallTypes {};

// What of a call's result and arguments an entry keeps: the result without its values, and what the function has left
// in arguments that it changed.
template <class Kept, class... Arguments>
struct CallFrame {
  std::optional<Kept> result;
  std::tuple<std::optional<Arguments>...> left;
};

// UserCode of a function with these arguments, each `T&`, `const T&` or `T&&`.
template <class Function, class... Args>
class TypedCode final : public UserCode {
 public:
  using Result = std::decay_t<std::invoke_result_t<Function&, GivenType<Args>...>>;
  static constexpr bool kReturnsNothing = std::is_void_v<Result>;
  using Kept = std::conditional_t<kReturnsNothing, std::tuple<>, Result>;
  using Frame = CallFrame<Kept, ArgumentType<Args>...>;
  using Left = std::tuple<std::optional<ArgumentType<Args>>...>;

  // `args`: the caller's, or where one is a text of another kind, that text as std::string.
  TypedCode(Function& function, const std::tuple<const ArgumentType<Args>&...>& args)
      : function_(function), args_(args) {}

  const std::type_info& types() const override {
    if constexpr (IsOverloaded<Function>::value) return typeid(CallTypes<Function, Kept, Args...>);
    return typeid(CallTypes<Function, Kept, ArgumentType<Args>...>);
  }

  std::vector<std::string> sources(const std::vector<std::string>& names) const override {
    std::vector<std::string> sources;
    SourceSink sink(sources);
    std::size_t index = 0;
    std::apply(
        [&](const auto&... arg) {
          ((sink.begin(index < names.size() ? names[index] : "arg" + std::to_string(index)), ++index,
            walk_unchanged(arg, sink)),
           ...);
        },
        args_);
    return sources;
  }

  void run(const StandIns& stand_ins) override {
    copies_.emplace(args_);
    StandInSink sink(stand_ins);
    std::apply([&](auto&... arg) { (walk(arg, sink), ...); }, *copies_);
    given_ = writable_contents();
    run_function(kEach);
  }

  std::vector<c10::IValue> values() override {
    std::vector<c10::IValue> values;
    for_each_value(
        *kept_, [&](at::Tensor& tensor) { values.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue()); },
        [&](c10::SymInt& number) { values.emplace_back(number); });
    return values;
  }

  std::vector<std::string> constants() override {
    LeafList leaves;
    LeafSink sink(leaves);
    walk(*kept_, sink);
    std::vector<std::string> constants;
    for (const Leaf& leaf : leaves) {
      if (leaf.kind != LeafKind::Tensor && leaf.kind != LeafKind::SymInt) constants.push_back(text_of(leaf));
    }
    for (const ArgumentContents& each : writable_contents()) {
      if (each.texts != given_[each.argument].texts)
        constants.insert(constants.end(), each.texts.begin(), each.texts.end());
    }
    return constants;
  }

  std::string unrepeatable_argument(const std::vector<std::string>& names) const override {
    const std::vector<ArgumentContents> now = writable_contents();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].same_values(given_[i]) && (now[i].texts == given_[i].texts || now[i].is_assignable)) continue;
      return i < names.size() ? names[i] : "arg" + std::to_string(i);
    }
    return "";
  }

  void change_arguments() const override {
    Left left;
    take_left(left, kEach);
    leave(left, kEach);
  }

  std::shared_ptr<const void> take_frame() override {
    auto frame = std::make_shared<Frame>();
    take_left(frame->left, kEach);
    copies_.reset();
    given_.clear();
    reset_values(*kept_);
    frame->result = std::move(*kept_);
    kept_.reset();
    return frame;
  }

  LeafList leaves_of_arguments() const {
    LeafList leaves;
    LeafSink sink(leaves);
    std::apply([&](const auto&... arg) { (walk_unchanged(arg, sink), ...); }, args_);
    return leaves;
  }

  // The result of a call that has been served. What the function leaves in its arguments is there then.
  Result result_of(const std::shared_ptr<const void>& frame, std::vector<c10::IValue> values) const {
    const Frame& kept_frame = *static_cast<const Frame*>(frame.get());
    leave(kept_frame.left, kEach);
    Kept kept = *kept_frame.result;
    std::size_t next = 0;
    for_each_value(
        kept,
        [&](at::Tensor& tensor) {
          c10::IValue& value = values[next++];
          if (value.isTensor()) tensor = std::move(value).toTensor();
        },
        [&](c10::SymInt& number) { number = std::move(values[next++]).toSymInt(); });
    if constexpr (!kReturnsNothing) return kept;
  }

 private:
  static constexpr std::index_sequence_for<Args...> kEach = {};
  template <std::size_t i>
  using Arg = std::tuple_element_t<i, std::tuple<Args...>>;

  // What stands in a copy that the function may change; nothing of others.
  struct ArgumentContents {
    std::size_t argument = 0;
    bool is_assignable = true;
    std::vector<std::string> texts = {};  // of what is neither tensor nor symbolic integer
    std::vector<at::Tensor> tensors = {};
    std::vector<c10::SymInt> ints = {};

    bool same_values(const ArgumentContents& other) const {
      return std::ranges::equal(tensors, other.tensors, [](const auto& a, const auto& b) { return a.is_same(b); }) &&
             std::ranges::equal(ints, other.ints, is_same_int);
    }
  };

  static bool is_same_int(const c10::SymInt& a, const c10::SymInt& b) {
    if (a.is_symbolic() != b.is_symbolic()) return false;
    return a.is_symbolic() ? a.toSymNodeImplUnowned() == b.toSymNodeImplUnowned()
                           : a.as_int_unchecked() == b.as_int_unchecked();
  }

  template <std::size_t... i>
  void run_function(std::index_sequence<i...>) {
    if constexpr (kReturnsNothing) {
      function_(as_given<Args>(std::get<i>(*copies_))...);
      kept_.emplace();
    } else {
      kept_.emplace(function_(as_given<Args>(std::get<i>(*copies_))...));
    }
  }

  std::vector<ArgumentContents> writable_contents() const { return writable_contents(kEach); }
  template <std::size_t... i>
  std::vector<ArgumentContents> writable_contents(std::index_sequence<i...>) const {
    return {contents_of<i>()...};
  }

  template <std::size_t i>
  ArgumentContents contents_of() const {
    ArgumentContents contents{.argument = i, .is_assignable = std::is_move_assignable_v<ArgumentType<Arg<i>>>};
    if constexpr (kIsWritable<Arg<i>>) {
      LeafList leaves;
      LeafSink sink(leaves);
      walk_unchanged(std::get<i>(*copies_), sink);
      for (const Leaf& leaf : leaves) {
        if (leaf.kind == LeafKind::Tensor || leaf.kind == LeafKind::Undefined) {
          contents.tensors.push_back(*leaf.tensor);
        } else if (leaf.kind == LeafKind::SymInt) {
          contents.ints.push_back(*leaf.sym_int);
        } else {
          contents.texts.push_back(exact_text_of(leaf));
        }
      }
    }
    return contents;
  }

  template <class T>
  static void reset_values(T& value) {
    for_each_value(value, [](at::Tensor& tensor) { tensor.reset(); }, [](c10::SymInt& number) { number = 0; });
  }

  template <std::size_t... i>
  void take_left(Left& left, std::index_sequence<i...>) const {
    (take_left<i>(std::get<i>(left)), ...);
  }
  template <std::size_t i>
  void take_left(std::optional<ArgumentType<Arg<i>>>& left) const {
    if constexpr (kIsWritable<Arg<i>> && std::is_move_assignable_v<ArgumentType<Arg<i>>>) {
      if (contents_of<i>().texts == given_[i].texts) return;
      left = std::get<i>(*copies_);
      reset_values(*left);
    }
  }

  template <std::size_t... i>
  void leave(const Left& left, std::index_sequence<i...>) const {
    (leave<i>(std::get<i>(left)), ...);
  }
  // The tensors and symbolic integers of the argument stay the caller's.
  template <std::size_t i>
  void leave(const std::optional<ArgumentType<Arg<i>>>& left) const {
    if constexpr (kIsWritable<Arg<i>> && std::is_move_assignable_v<ArgumentType<Arg<i>>>) {
      if (!left) return;
      auto& argument = const_cast<ArgumentType<Arg<i>>&>(std::get<i>(args_));  // it is no constant: kIsWritable
      ArgumentType<Arg<i>> changed = *left;
      std::vector<at::Tensor> tensors;
      std::vector<c10::SymInt> ints;
      for_each_value(
          argument, [&](at::Tensor& tensor) { tensors.push_back(tensor); },
          [&](c10::SymInt& number) { ints.push_back(number); });
      std::size_t next_tensor = 0, next_int = 0;
      for_each_value(
          changed, [&](at::Tensor& tensor) { tensor = tensors.at(next_tensor++); },
          [&](c10::SymInt& number) { number = ints.at(next_int++); });
      argument = std::move(changed);
    }
  }

  Function& function_;
  const std::tuple<const ArgumentType<Args>&...>& args_;
  std::optional<std::tuple<ArgumentType<Args>...>> copies_;
  std::vector<ArgumentContents> given_;  // before the function ran
  std::optional<Kept> kept_;
};

template <class Function, class... Args>
struct TypedCaller {
  // Temporaries among the arguments live until it returns.
  template <class Eagerly>
  static auto call(Callable& callable, Function& function, Eagerly&& eagerly, const ArgumentType<Args>&... args) {
    using Code = TypedCode<Function, Args...>;
    const std::tuple<const ArgumentType<Args>&...> tied(args...);
    Code code(function, tied);
    const LeafList leaves = code.leaves_of_arguments();
    const Entry* entry = callable.prepare(leaves, code);
    if (code.served) return code.result_of(code.served->frame, std::move(code.served->values));
    if (entry) return code.result_of(Callable::frame(*entry), Callable::run(*entry, leaves));
    return static_cast<typename Code::Result>(eagerly());
  }
};

// Calls the function through the caches of `callable`.
template <class Function, class... Args>
auto call(Callable& callable, Function& function, Args&&... args) {
  if constexpr (std::is_invocable_v<Function&, GivenType<Args&&>...>) {
    const auto eagerly = [&]() -> decltype(auto) { return function(std::forward<Args>(args)...); };
    return TypedCaller<Function, Args&&...>::call(callable, function, eagerly, args...);
  } else {
    detail::refuse_type<std::tuple<std::decay_t<Args>...>>();
  }
}

}  // namespace rehearse::compiler
