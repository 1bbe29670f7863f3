// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <rehearse/capture/segments.h>
#include <rehearse/compile/argument_sinks.h>

namespace rehearse {
namespace compiler {

template <class T>
inline constexpr bool kIsReference = false;
template <class T>
inline constexpr bool kIsReference<std::reference_wrapper<T>> = true;

template <class T>
decltype(auto) unwrapped(T& value) {
  if constexpr (kIsReference<T>) {
    return value.get();
  } else {
    return (value);
  }
}

template <class T>
std::string texts_of(const T& value) {
  LeafList leaves;
  LeafSink sink(leaves);
  walk(const_cast<T&>(value), sink);
  std::string text;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == LeafKind::Tensor || leaf.kind == LeafKind::Undefined) continue;
    text += (text.empty() ? "" : ", ") + text_of(leaf);
  }
  return text;
}
// A region's result; regions with equal results share it.
template <class Kept>
struct TypedResult final : capture::RegionResult {
  Kept kept;
  explicit TypedResult(Kept value) : kept(std::move(value)) {}

  std::vector<at::Tensor> tensors() override {
    std::vector<at::Tensor> found;
    for_each_value(kept, [&](at::Tensor& tensor) { found.push_back(tensor); }, [](c10::SymInt&) {});
    return found;
  }
  void replace(const std::vector<at::Tensor>& tensors) override {
    std::size_t next = 0;
    for_each_value(kept, [&](at::Tensor& tensor) { tensor = tensors.at(next++); }, [](c10::SymInt&) {});
  }
  std::string constants() override { return texts_of(kept); }
};

template <class Fn, class... Args>
class TypedRegion final : public capture::EagerRegion {
 public:
  using Returned = std::decay_t<decltype(std::declval<Fn&>()(unwrapped(std::declval<Args&>())...))>;
  static constexpr bool kReturnsNothing = std::is_void_v<Returned>;
  using Kept = std::conditional_t<kReturnsNothing, std::tuple<>, Returned>;

  TypedRegion(Fn fn, std::tuple<Args...> args) : fn_(fn), args_(std::move(args)) {
    for_each_argument([this](at::Tensor& tensor) {
      is_defined_.push_back(tensor.defined());
      if (tensor.defined()) tensors_.push_back(std::exchange(tensor, {}));
    });
  }

  // Returns the defined tensors of the arguments. The region keeps none of them.
  std::vector<at::Tensor> take_tensors() { return std::exchange(tensors_, {}); }

  std::string identity() const override {
    // Types in different files may have one name, but each has its own type_info.
    std::string text = std::to_string(reinterpret_cast<std::uintptr_t>(&typeid(TypedRegion)));
    if constexpr (std::is_pointer_v<Fn>) text += "@" + std::to_string(reinterpret_cast<std::uintptr_t>(fn_));
    std::apply([&](const auto&... arg) { ((text += "; " + texts_of_argument(arg)), ...); }, args_);
    for (const bool is_defined : is_defined_) text += is_defined ? "; tensor" : "; undefined";
    return text;
  }

  std::shared_ptr<capture::RegionResult> run(std::vector<at::Tensor> tensors) const override {
    TypedRegion own(*this);
    std::size_t position = 0, next = 0;
    own.for_each_argument([&](at::Tensor& tensor) {
      if (is_defined_[position++]) tensor = tensors.at(next++);
    });
    return std::apply(
        [&own](auto&... args) {
          if constexpr (kReturnsNothing) {
            own.fn_(unwrapped(args)...);
            return std::make_shared<TypedResult<Kept>>(Kept());
          } else {
            return std::make_shared<TypedResult<Kept>>(own.fn_(unwrapped(args)...));
          }
        },
        own.args_);
  }

  std::vector<const void*> references() const override {
    std::vector<const void*> objects;
    const auto add = [&]<class T>(const T& arg) {
      if constexpr (kIsReference<T>) objects.push_back(&arg.get());
    };
    std::apply([&](const auto&... arg) { (add(arg), ...); }, args_);
    return objects;
  }

 private:
  template <class Visit>
  void for_each_argument(Visit&& visit) {
    const auto each = [&]<class T>(T& arg) {
      if constexpr (!kIsReference<T>) {
        for_each_value(arg, visit, [](c10::SymInt& number) { number = number.guard_int(__FILE__, __LINE__); });
      }
    };
    std::apply([&](auto&... arg) { (each(arg), ...); }, args_);
  }

  template <class T>
  static std::string texts_of_argument(const T& arg) {
    if constexpr (kIsReference<T>) {
      return "reference " + std::to_string(reinterpret_cast<std::uintptr_t>(&arg.get()));
    } else {
      return texts_of(arg);
    }
  }

  Fn fn_;
  std::tuple<Args...> args_;
  std::vector<bool> is_defined_;  // for each tensor of the arguments
  std::vector<at::Tensor> tensors_;
};

}  // namespace compiler

// Runs fn(args...) eagerly, once per call, also within a compiled function. For code that no graph can hold, such as a
// log line, a write to a file, a call of another library. The graph ends before the region and another one begins after
// it; the region's result becomes inputs of the second graph. Outside of a compiled function, eager_region() only calls
// fn(args...).
//
//   auto compiled = rehearse::compile([](at::Tensor x) {
//     at::Tensor y = x.relu();
//     rehearse::eager_region([](const at::Tensor& y) { std::cout << y.sum().item<float>() << '\n'; }, y);
//     return y * 2;
//   });
//
// `fn` is a function or a lambda without captures, because later calls run it without the code around it. Pass what it
// needs as arguments. A tensor arrives as a real one. Numbers, strings and structures of these (argument_walk.h) keep
// the values of the call that compiled, unless they come from tensors. std::ref() passes an object that outlives the
// compiled function. If the object is a local one, an argument or a member of the function object, the function is not
// compiled, and a warning says so. The result may have the types that arguments may have. A number in the result
// selects a branch, as a read of a tensor does. If fn returns a reference, the caller gets a value.
//
// Errors: CompileError if fn leaves grad mode, autocast or another mode changed, or a module's train() or eval().
// capture::NotCapturable with CompileOptions::fullgraph, with the line; what fn throws. The code after the
// region sees what fn does to the data of its tensors. A region still runs correctly if it changes whether a tensor
// requires grad, or a tensor's sizes, or if its result shares memory with an argument; but then the function is no
// longer compiled, and a warning says so.
template <class Fn, class... Args>
auto eager_region(Fn fn, Args... args) {
  static_assert(std::is_empty_v<Fn> || (std::is_pointer_v<Fn> && std::is_function_v<std::remove_pointer_t<Fn>>),
                "eager_region() takes a function or a lambda without captures: pass what it needs as arguments, with "
                "std::ref() what it refers to");
  using Region = compiler::TypedRegion<Fn, Args...>;
  const auto region = std::make_shared<Region>(fn, std::tuple<Args...>(std::move(args)...));
  const auto result = capture::run_region(region, region->take_tensors());
  if constexpr (!Region::kReturnsNothing)
    return std::move(static_cast<compiler::TypedResult<typename Region::Kept>&>(*result).kept);
}

}  // namespace rehearse
