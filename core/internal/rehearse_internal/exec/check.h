// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <variant>

// REHEARSE_CHECK(condition, values...) for what must hold whatever a user does: a broken invariant ends the process, in
// release too, instead of a wrong report later. What a user may get wrong is an exception with a type and a cure.
//
// Where the condition is false, one line goes to stderr with the condition, file and line, each value by its name, and
// the rank with its virtual time; then std::abort(). Values are numbers, bools, enums and texts; they are computed
// then only. It costs one predicted branch, allocates nothing, blocks nothing, and may stand in noexcept functions.
#define REHEARSE_CHECK(condition, ...)                                                               \
  do {                                                                                               \
    if (!(condition)) [[unlikely]] {                                                                 \
      ::rehearse::exec::check_failed({#condition, #__VA_ARGS__, __FILE__, __LINE__}, {__VA_ARGS__}); \
    }                                                                                                \
  } while (false)

namespace rehearse::exec {

// The text of a check, as it stands in the source.
struct CheckText {
  std::string_view condition;
  std::string_view names;  // of the values, with commas between them
  std::string_view file;
  int line;
};

class CheckedValue {
 public:
  template <class T>
    requires std::is_enum_v<T> || std::integral<T> || std::convertible_to<T, std::string_view>
  CheckedValue(const T& value) noexcept : value_(of(value)) {}

  const auto& value() const noexcept { return value_; }

 private:
  using Value = std::variant<bool, std::int64_t, std::uint64_t, std::string_view>;

  template <class T>
  static Value of(const T& value) noexcept {
    if constexpr (std::same_as<T, bool>) {
      return value;
    } else if constexpr (std::unsigned_integral<T>) {
      return std::uint64_t{value};
    } else if constexpr (std::integral<T> || std::is_enum_v<T>) {
      return static_cast<std::int64_t>(value);
    } else {
      return std::string_view(value);
    }
  }

  Value value_;
};

[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const CheckText& check,
                                                         std::initializer_list<CheckedValue> values) noexcept;

}  // namespace rehearse::exec
