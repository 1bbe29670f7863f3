// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
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

// UserCode of a function with these arguments. `Args` are ArgumentTypes.
template <class Function, class... Args>
class TypedCode final : public UserCode {
 public:
  using Result = std::decay_t<std::invoke_result_t<Function&, Args&...>>;
  static constexpr bool kReturnsNothing = std::is_void_v<Result>;
  using Kept = std::conditional_t<kReturnsNothing, std::tuple<>, Result>;

  TypedCode(Function& function, const std::tuple<const Args&...>& args) : function_(function), args_(args) {}

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
    given_ = tensors_of_copies();
    if constexpr (kReturnsNothing) {
      std::apply(function_, *copies_);
      kept_.emplace();
    } else {
      kept_.emplace(std::apply(function_, *copies_));
    }
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
    return constants;
  }

  std::string replaced_argument(const std::vector<std::string>& sources) const override {
    const std::vector<at::Tensor> now = tensors_of_copies();
    if (now.size() != given_.size()) return "list";
    std::size_t seen = 0;
    LeafList leaves = leaves_of_arguments();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].kind != LeafKind::Tensor && leaves[i].kind != LeafKind::Undefined) continue;
      if (!now[seen].is_same(given_[seen])) return sources[i];
      ++seen;
    }
    return "";
  }

  std::shared_ptr<const void> take_frame() override {
    copies_.reset();
    given_.clear();
    for_each_value(*kept_, [](at::Tensor& tensor) { tensor.reset(); }, [](c10::SymInt& number) { number = 0; });
    auto frame = std::make_shared<Kept>(std::move(*kept_));
    kept_.reset();
    return frame;
  }

  LeafList leaves_of_arguments() const {
    LeafList leaves;
    LeafSink sink(leaves);
    std::apply([&](const auto&... arg) { (walk_unchanged(arg, sink), ...); }, args_);
    return leaves;
  }

  // The result of a call that an entry served.
  static Result result(const Entry& entry, std::vector<c10::IValue> values) {
    return result_of(Callable::frame(entry), std::move(values));
  }
  static Result result_of(const std::shared_ptr<const void>& frame, std::vector<c10::IValue> values) {
    Kept kept = *static_cast<const Kept*>(frame.get());
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
  std::vector<at::Tensor> tensors_of_copies() const {
    std::vector<at::Tensor> tensors;
    const auto ignore = [](const c10::SymInt&) {};
    const auto add = [&](const at::Tensor& tensor) { tensors.push_back(tensor); };
    std::apply(
        [&](const auto&... arg) { (for_each_value(const_cast<std::decay_t<decltype(arg)>&>(arg), add, ignore), ...); },
        *copies_);
    return tensors;
  }

  Function& function_;
  const std::tuple<const Args&...>& args_;
  std::optional<std::tuple<Args...>> copies_;
  std::vector<at::Tensor> given_;  // tensors among the copies, before the function ran
  std::optional<Kept> kept_;
};

template <class Function, class... Args>
struct TypedCaller {
  // Temporaries among the arguments live until it returns.
  template <class Eagerly>
  static auto call(Callable& callable, Function& function, Eagerly&& eagerly, const Args&... args) {
    using Code = TypedCode<Function, Args...>;
    const std::tuple<const Args&...> tied(args...);
    Code code(function, tied);
    const LeafList leaves = code.leaves_of_arguments();
    const Entry* entry = callable.prepare(leaves, code);
    if (code.served) return Code::result_of(code.served->frame, std::move(code.served->values));
    if (entry) return Code::result(*entry, Callable::run(*entry, leaves));
    return static_cast<typename Code::Result>(eagerly());
  }
};

// Calls the function through the caches of `callable`.
template <class Function, class... Args>
auto call(Callable& callable, Function& function, Args&&... args) {
  const auto eagerly = [&]() -> decltype(auto) { return function(std::forward<Args>(args)...); };
  return TypedCaller<Function, ArgumentType<Args>...>::call(callable, function, eagerly, args...);
}

}  // namespace rehearse::compiler
