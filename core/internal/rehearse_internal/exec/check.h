// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <variant>

// REHEARSE_CHECK(condition, values...) checks what must hold whatever a user does. A broken invariant ends the process
// at once, in release builds too, rather than leading to a wrong report. For a user's mistake, throw an exception with
// its own type and a cure instead.
//
// If the condition is false, writes one line to stderr, with the condition, file and line, the name and value of each
// argument, and the rank with its virtual time. Then calls std::abort(). Values are integers, bools, enums and texts;
// they are evaluated only on failure. Costs one predicted branch, allocates and blocks nothing, and may be used in
// noexcept functions.
#define REHEARSE_CHECK(condition, ...)                                                               \
  do {                                                                                               \
    if (!(condition)) [[unlikely]] {                                                                 \
      ::rehearse::exec::check_failed({#condition, #__VA_ARGS__, __FILE__, __LINE__}, {__VA_ARGS__}); \
    }                                                                                                \
  } while (false)

namespace rehearse::exec {

struct CheckText {
  std::string_view condition;
  std::string_view names;  // names of the values, separated by commas
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

// The line that check_failed() has written, without its end; empty while no check has failed. Async-signal-safe.
std::string_view failed_check() noexcept;

}  // namespace rehearse::exec
