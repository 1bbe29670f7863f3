// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <rehearse/compile/argument_sinks.h>
#include <rehearse/compile/user_code.h>

namespace rehearse::compiler {

// Stands for std::nullopt, because a std::optional cannot hold that.
struct NoValue {
  NoValue() = default;
  explicit NoValue(std::nullopt_t) {}
};
template <class Visit>
void visit_fields(NoValue&, Visit&&) {}

template <class Arg>
inline constexpr bool kIsNullopt = std::is_same_v<std::decay_t<Arg>, std::nullopt_t>;
template <class Arg>
inline constexpr bool kIsOtherText =
    std::is_convertible_v<Arg, std::string_view> && !std::is_same_v<std::decay_t<Arg>, std::string>;

// An argument's type in the tree: std::string for every kind of text, NoValue for std::nullopt, the type itself
// otherwise.
template <class Arg>
using ArgumentType =
    std::conditional_t<kIsNullopt<Arg>, NoValue, std::conditional_t<kIsOtherText<Arg>, std::string, std::decay_t<Arg>>>;

// The argument in its type in the tree: the argument itself, or a temporary.
template <class Arg>
decltype(auto) in_tree(const std::remove_reference_t<Arg>& arg) {
  if constexpr (std::is_same_v<std::decay_t<Arg>, ArgumentType<Arg>>) {
    return (arg);
  } else {
    return ArgumentType<Arg>(arg);
  }
}

// walk() needs mutable values, but LeafSink and SourceSink change none.
template <class T, class Sink>
void walk_unchanged(const T& value, Sink& sink) {
  walk(const_cast<T&>(value), sink);
}

// True if the function may change the caller's argument. False for a constant, for a temporary, and for a text that is
// passed as a std::string.
template <class Arg>
inline constexpr bool kIsWritable = std::is_lvalue_reference_v<Arg> && !std::is_const_v<std::remove_reference_t<Arg>> &&
                                    std::is_same_v<std::decay_t<Arg>, ArgumentType<Arg>>;

// Returns the copy with the constness and value category of the argument, so that the call chooses the same overload as
// with the argument.
template <class Arg>
decltype(auto) as_given(ArgumentType<Arg>& copy) {
  if constexpr (kIsNullopt<Arg>) {
    return std::nullopt_t(std::nullopt);
  } else if constexpr (kIsWritable<Arg>) {
    return (copy);
  } else if constexpr (std::is_lvalue_reference_v<Arg> && std::is_same_v<std::decay_t<Arg>, ArgumentType<Arg>>) {
    return std::as_const(copy);
  } else {
    return std::move(copy);
  }
}

template <class Arg>
using GivenType = decltype(as_given<Arg>(std::declval<ArgumentType<Arg>&>()));

template <class T>
void reset_values(T& value) {
  for_each_value(value, [](at::Tensor& tensor) { tensor.reset(); }, [](c10::SymInt& number) { number = 0; });
}

// Copies of the arguments of one call. The function gets the copies, in which stand-ins replace tensors and symbolic
// integers. `Args`: each `T&`, `const T&` or `T&&`.
template <class... Args>
class ArgumentCopies {
 public:
  using Left = std::tuple<std::optional<ArgumentType<Args>>...>;

  // `args`: the caller's arguments; a text of another type is passed as std::string. Kept by reference.
  explicit ArgumentCopies(const std::tuple<const ArgumentType<Args>&...>& args) : args_(args) {}

  void make(const StandIns& stand_ins) {
    copies_.emplace(args_);
    StandInSink sink(stand_ins);
    std::apply([&](auto&... arg) { (walk(arg, sink), ...); }, *copies_);
    given_ = writable_contents();
  }
  void reset() {
    copies_.reset();
    given_.clear();
  }
  template <std::size_t i>
  auto& get() {
    return std::get<i>(*copies_);
  }

  std::vector<std::string> sources(const std::vector<std::string>& names) const {
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

  LeafList leaves() const {
    LeafList leaves;
    LeafSink sink(leaves);
    std::apply([&](const auto&... arg) { (walk_unchanged(arg, sink), ...); }, args_);
    return leaves;
  }

  // The numbers and texts of arguments that the function has changed.
  std::vector<std::string> changed_constants() const {
    std::vector<std::string> constants;
    for (const ArgumentContents& each : writable_contents()) {
      if (each.texts == given_[each.argument].texts) continue;
      constants.insert(constants.end(), each.texts.begin(), each.texts.end());
    }
    return constants;
  }

  // See UserCode::unrepeatable_argument().
  std::string unrepeatable(const std::vector<std::string>& names) const {
    const std::vector<ArgumentContents> now = writable_contents();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].same_values(given_[i]) && (now[i].texts == given_[i].texts || now[i].is_assignable)) continue;
      return i < names.size() ? names[i] : "arg" + std::to_string(i);
    }
    return "";
  }

  // The values that the function has left in the copies, without tensors and symbolic integers. Empty for an argument
  // in which the function has changed none of these values.
  Left left() const {
    Left left;
    take_left(left, kEach);
    return left;
  }
  // Puts `left` into the caller's arguments, which keep their tensors and symbolic integers. Leaves an argument as it
  // is if the function has changed how many of these it contains, because only give() knows the added ones.
  void leave(const Left& left) const { leave(left, kEach); }
  // Puts what the function has changed into the caller's arguments. `real` returns the real value of a stand-in.
  void give(const UserCode::RealValue& real) const { give(real, kEach); }

 private:
  static constexpr std::index_sequence_for<Args...> kEach = {};
  template <std::size_t i>
  using Arg = std::tuple_element_t<i, std::tuple<Args...>>;

  // The contents of a copy that the function may change. Empty for other copies.
  struct ArgumentContents {
    std::size_t argument = 0;
    bool is_assignable = true;
    std::vector<std::string> texts = {};  // all leaves but tensors and symbolic integers
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
  void give(const UserCode::RealValue& real, std::index_sequence<i...>) const {
    (give<i>(real), ...);
  }
  template <std::size_t i>
  void give(const UserCode::RealValue& real) const {
    if constexpr (kIsWritable<Arg<i>> && std::is_move_assignable_v<ArgumentType<Arg<i>>>) {
      const ArgumentContents now = contents_of<i>();
      if (now.same_values(given_[i]) && now.texts == given_[i].texts) return;
      ArgumentType<Arg<i>> changed = std::get<i>(*copies_);
      for_each_value(
          changed, [&](at::Tensor& tensor) { tensor = real(tensor).toTensor(); },
          [&](c10::SymInt& number) { number = real(number).toInt(); });
      const_cast<ArgumentType<Arg<i>>&>(std::get<i>(args_)) = std::move(changed);  // not a constant: kIsWritable
    }
  }

  template <std::size_t... i>
  void leave(const Left& left, std::index_sequence<i...>) const {
    (leave<i>(std::get<i>(left)), ...);
  }
  template <std::size_t i>
  void leave(const std::optional<ArgumentType<Arg<i>>>& left) const {
    if constexpr (kIsWritable<Arg<i>> && std::is_move_assignable_v<ArgumentType<Arg<i>>>) {
      if (!left) return;
      auto& argument = const_cast<ArgumentType<Arg<i>>&>(std::get<i>(args_));  // not a constant: kIsWritable
      ArgumentType<Arg<i>> changed = *left;
      std::vector<at::Tensor> tensors;
      std::vector<c10::SymInt> ints;
      for_each_value(
          argument, [&](at::Tensor& tensor) { tensors.push_back(tensor); },
          [&](c10::SymInt& number) { ints.push_back(number); });
      std::size_t next_tensor = 0, next_int = 0;
      for_each_value(
          changed,
          [&](at::Tensor& tensor) {
            if (next_tensor < tensors.size()) tensor = tensors[next_tensor];
            ++next_tensor;
          },
          [&](c10::SymInt& number) {
            if (next_int < ints.size()) number = ints[next_int];
            ++next_int;
          });
      if (next_tensor != tensors.size() || next_int != ints.size()) return;
      argument = std::move(changed);
    }
  }

  const std::tuple<const ArgumentType<Args>&...>& args_;
  std::optional<std::tuple<ArgumentType<Args>...>> copies_;
  std::vector<ArgumentContents> given_;  // before the function ran
};

}  // namespace rehearse::compiler
