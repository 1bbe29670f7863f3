// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/SymInt.h>

#include <rehearse/compile/leaf.h>
#include <rehearse/job/group.h>
#include <rehearse/parallel/placement.h>

// Walks the arguments and results of compiled functions as trees. Their C++ types give the shape of the trees.
namespace rehearse::compiler {

// LibTorch's placements. The overloads take exactly these types, because a derived class may have more fields to guard.
template <std::same_as<torch::distributed::Replicate> T, class Visit>
void visit_fields(T&, Visit&&) {}
template <std::same_as<torch::distributed::Shard> T, class Visit>
void visit_fields(T& shard, Visit&& visit) {
  visit("dim", shard.dim);
}
template <std::same_as<torch::distributed::StridedShard> T, class Visit>
void visit_fields(T& shard, Visit&& visit) {
  visit("dim", shard.dim);
  visit("split_factor", shard.split_factor);
}
template <std::same_as<torch::distributed::Partial> T, class Visit>
void visit_fields(T& partial, Visit&& visit) {
  visit("reduce_op", partial.reduce_op);
}

namespace detail {

struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&) const {}
};

template <class T>
concept HasFields = requires(T& value, AnyVisitor visitor) { visit_fields(value, visitor); };
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <class T>
concept Optional = requires(T& value) { value.has_value(), *value, value.reset(); };
template <class T>
concept Variant = requires { std::variant_size<T>::value; };
template <class T>
concept OrderedMap = requires {
  typename T::mapped_type;
  typename T::key_compare;
};
template <class T>
concept OwnedList = std::ranges::range<T> && !std::ranges::view<T> && std::is_copy_constructible_v<T> &&
                    requires(T& value) { value.push_back(*value.begin()), value.size(); };
template <class T>
concept ProcessGroup = std::is_same_v<T, Group> || std::is_same_v<T, c10::intrusive_ptr<c10d::ProcessGroup>>;

template <class>
inline constexpr bool kNotOfTheList = false;

// Fails to compile; the message lists the accepted types. `T`: the type that was refused.
template <class T>
constexpr void refuse_type() {
  static_assert(kNotOfTheList<T>,
                "an argument or result of a compiled function is an at::Tensor, c10::SymInt, integer, bool, enum, "
                "double, std::string, c10::Device, a process group, a rehearse::DeviceMesh, a placement, a "
                "std::optional, variant, tuple, pair, array, vector or map of these, or a struct with "
                "visit_fields(struct&, visit) beside it; a parameter for text is a std::string or a std::string_view");
}

// Fails to compile. `T`: torch::distributed::Placement, or a class that a user derives from it. A copy of a Placement
// loses the derived class.
template <class T>
constexpr void refuse_placement() {
  static_assert(kNotOfTheList<T>,
                "a torch::distributed::Placement by itself does not tell which placement it is: take a "
                "rehearse::AnyPlacement (a std::variant of Replicate, Shard and Partial), or one of these classes; a "
                "class of your own needs a visit_fields(class&, visit) beside it");
}

}  // namespace detail

// Calls `sink` for each leaf in `value`, in order: tensor(at::Tensor&), sym_int(c10::SymInt&),
// text(const std::string&), group(c10d::ProcessGroup*), real(double) and number(LeafKind, int64_t). Calls enter(index)
// or enter(name) before each item and each field, and leave() after it. Sinks may write to tensors and symbolic
// integers.
//
// Types: at::Tensor, c10::SymInt, integers, bool, enums, double, std::string, c10::Device, process groups, device
// meshes, LibTorch's placements; std::optional, std::variant, std::tuple, std::pair, std::array, std::vector and other
// owning lists of these; std::map with keys that are integers or strings. To add a struct of your own, write a function
// beside it that names every field that the compiled code reads:
//
//   struct Batch { at::Tensor ids; std::optional<at::Tensor> mask; };
//   template <class Visit>
//   void visit_fields(Batch& batch, Visit&& visit) { visit("ids", batch.ids); visit("mask", batch.mask); }
template <class T, class Sink>
void walk(T& value, Sink& sink);

namespace detail {

template <class Tuple, class Sink, std::size_t... i>
void walk_tuple(Tuple& value, Sink& sink, std::index_sequence<i...>) {
  ((sink.enter(i), walk(std::get<i>(value), sink), sink.leave()), ...);
}

template <class List, class Sink>
void walk_list(List& list, Sink& sink) {
  sink.number(LeafKind::Length, static_cast<std::int64_t>(list.size()));
  std::size_t index = 0;
  for (auto&& item : list) {
    sink.enter(index++);
    if constexpr (std::is_lvalue_reference_v<decltype(item)>) {
      walk(item, sink);
    } else {
      bool value = item;  // std::vector<bool>
      walk(value, sink);
    }
    sink.leave();
  }
}

template <class Map, class Sink>
void walk_map(Map& map, Sink& sink) {
  sink.number(LeafKind::Length, static_cast<std::int64_t>(map.size()));
  for (auto& [key, item] : map) {
    if constexpr (std::is_integral_v<typename Map::key_type>) {
      sink.number(LeafKind::Int, static_cast<std::int64_t>(key));
      sink.enter(static_cast<std::size_t>(key));
    } else {
      static_assert(std::is_same_v<typename Map::key_type, std::string>,
                    "keys of maps among the arguments of a compiled function are integers or std::string");
      sink.text(key);
      sink.enter(key.c_str());
    }
    walk(item, sink);
    sink.leave();
  }
}

template <class T, class Sink>
void walk_scalar(T& value, Sink& sink) {
  if constexpr (std::is_same_v<T, bool>) {
    sink.number(LeafKind::Bool, value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    sink.number(LeafKind::Int, static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    sink.real(static_cast<double>(value));
    // A long double is the sum of two doubles.
    if constexpr (sizeof(T) > sizeof(double)) sink.real(static_cast<double>(value - static_cast<double>(value)));
  } else {
    sink.number(LeafKind::Int, static_cast<std::int64_t>(value.type()));
    sink.number(LeafKind::Int, value.index());
  }
}

template <class T, class Sink>
void walk_parts(T& value, Sink& sink) {
  if constexpr (Variant<T>) {
    sink.number(LeafKind::Choice, static_cast<std::int64_t>(value.index()));
    std::visit([&sink](auto& held) { walk(held, sink); }, value);
  } else if constexpr (Optional<T>) {
    sink.number(LeafKind::Length, value.has_value());
    if (value.has_value()) walk(*value, sink);
  } else if constexpr (OrderedMap<T>) {
    walk_map(value, sink);
  } else if constexpr (OwnedList<T>) {
    walk_list(value, sink);
  } else if constexpr (TupleLike<T>) {
    walk_tuple(value, sink, std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    refuse_type<T>();
  }
}

}  // namespace detail

template <class T, class Sink>
void walk(T& value, Sink& sink) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    sink.tensor(value);
  } else if constexpr (std::is_same_v<T, c10::SymInt>) {
    sink.sym_int(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    sink.text(value);
  } else if constexpr (std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, std::monostate>) {
    sink.number(LeafKind::Length, 0);
  } else if constexpr (detail::ProcessGroup<T>) {
    const c10::intrusive_ptr<c10d::ProcessGroup>& group = value;
    sink.group(group.get());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, c10::Device>) {
    detail::walk_scalar(value, sink);
  } else if constexpr (detail::HasFields<T>) {
    visit_fields(value, [&sink](const char* name, auto& field) {
      sink.enter(name);
      walk(field, sink);
      sink.leave();
    });
  } else if constexpr (std::is_base_of_v<torch::distributed::Placement, T>) {
    detail::refuse_placement<T>();
  } else {
    detail::walk_parts(value, sink);
  }
}

}  // namespace rehearse::compiler
