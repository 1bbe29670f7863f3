// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace rehearse::parallel {

// Calls `visit` for each tensor in an IValue: in tensors, tuples, lists and dict values, at any depth. Rebuilds
// containers from the visited tensors, so that other owners of the old containers see no change.
void visit_ivalue_tensors(c10::IValue& value, const std::function<void(at::Tensor&)>& visit);

// Finds the tensors in the result of a module's forward(), in order, as _find_tensors() in PyTorch's
// torch/nn/parallel/distributed.py does: in tensors, ranges (vector, array, list, span), values of maps, pairs, tuples,
// optionals, variants and c10::IValue, at any depth. Other types hold no tensors.
//
// To add a struct of your own, write a function beside it:
//
//   struct Outputs { at::Tensor logits; std::vector<at::Tensor> hidden; };
//   template <class Visit>
//   void visit_tensors(Outputs& outputs, Visit&& visit) { visit(outputs.logits); visit(outputs.hidden); }
//
// Calls `Fn` with an at::Tensor&, which `Fn` may replace by another tensor.
template <class Fn>
class TensorVisitor {
 public:
  explicit TensorVisitor(Fn& fn) : fn_(fn) {}

  template <class T>
  void operator()(T& value) const {
    if constexpr (std::is_const_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return;
    } else if constexpr (std::is_base_of_v<at::Tensor, T>) {
      fn_(value);
    } else if constexpr (std::is_same_v<T, c10::IValue>) {
      visit_ivalue_tensors(value, fn_);
    } else if constexpr (requires { visit_tensors(value, *this); }) {
      visit_tensors(value, *this);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      std::apply([this](auto&... parts) { ((*this)(parts), ...); }, value);
    } else if constexpr (requires { value.has_value(), *value; }) {
      if (value.has_value()) (*this)(*value);
    } else if constexpr (requires { std::visit(*this, value); }) {
      std::visit(*this, value);
    } else if constexpr (is_range_of_references<T>()) {
      for (auto& part : value) visit_part<T>(part);
    }
  }

 private:
  // False for vector<bool> and the like, whose iterators return values.
  template <class T>
  static consteval bool is_range_of_references() {
    if constexpr (std::ranges::range<T>) return std::is_lvalue_reference_v<std::ranges::range_reference_t<T>>;
    return false;
  }

  template <class Range, class Part>
  void visit_part(Part& part) const {
    if constexpr (requires { typename Range::mapped_type; }) {
      (*this)(part.second);
    } else {
      (*this)(part);
    }
  }

  Fn& fn_;
};

// Whether for_each_tensor() would look for tensors in a non-const T that owns its parts. False for views (std::span,
// at::TensorList), although for_each_tensor() looks into some of these, too.
template <class T>
consteval bool holds_tensors() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::ranges::view<T>) {
    return false;
  } else if constexpr (std::is_base_of_v<at::Tensor, T> || std::is_same_v<T, c10::IValue> ||
                       requires(T& value, void (&fn)(at::Tensor&)) { visit_tensors(value, fn); }) {
    return true;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return (holds_tensors<std::remove_cvref_t<std::tuple_element_t<i, T>>>() || ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (requires { std::variant_size<T>::value; }) {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return (holds_tensors<std::variant_alternative_t<i, T>>() || ...);
    }(std::make_index_sequence<std::variant_size_v<T>>());
  } else if constexpr (requires(T& value) { value.has_value(), *value; }) {
    return holds_tensors<std::remove_cvref_t<decltype(*std::declval<T&>())>>();
  } else if constexpr (std::ranges::range<T>) {
    using Part = std::remove_cvref_t<std::ranges::range_reference_t<T>>;
    if constexpr (!std::is_same_v<Part, T>) return holds_tensors<Part>();
  }
  return false;
}

template <class T, class Fn>
void for_each_tensor(T& value, Fn&& fn) {
  TensorVisitor<std::remove_reference_t<Fn>> visitor(fn);
  visitor(value);
}

}  // namespace rehearse::parallel
