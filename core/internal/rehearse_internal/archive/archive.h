// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Turns values into bytes and back: for messages between ranks and processes, and for files that only the program that
// wrote them reads. For each struct, a function fields(archive, value) in the struct's namespace passes to the archive
// the fields that travel. This function serves both directions.
//
// Numbers, enumerators, times and durations are eight bytes, low byte first. Texts and lists follow their length,
// optional values a truth value, and variants the index of their alternative.
namespace rehearse::archive {

static_assert(std::endian::native == std::endian::little);

// No packed() gives these bytes.
class DamagedBytes : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
inline constexpr bool is_number = std::is_enum_v<T> || std::is_integral_v<T>;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T>
concept Duration = requires(const T& value) { T(value.count()); };
template <class T>
concept TimePoint = requires(const T& value) { T(value.time_since_epoch()); };

class Packer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

  // See Unpacker.
  template <class T>
  void check(const T&, T, const char*) {}

  std::string take() { return std::move(bytes_); }

 private:
  void number(std::int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }

  template <class T>
  void put(const T& value) {
    if constexpr (is_number<T>) {
      number(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, double>) {
      number(std::bit_cast<std::int64_t>(value));
    } else if constexpr (Duration<T>) {
      number(value.count());
    } else if constexpr (TimePoint<T>) {
      put(value.time_since_epoch());
    } else if constexpr (std::is_same_v<T, std::string>) {
      number(static_cast<std::int64_t>(value.size()));
      bytes_ += value;
    } else if constexpr (is_vector<T>) {
      number(static_cast<std::int64_t>(value.size()));
      for (auto&& each : value) put<typename T::value_type>(each);
    } else if constexpr (is_optional<T>) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (is_variant<T>) {
      number(static_cast<std::int64_t>(value.index()));
      std::visit([this](const auto& each) { put(each); }, value);
    } else {
      fields(*this, const_cast<T&>(value));  // fields() is shared with Unpacker; here it only reads
    }
  }

  std::string bytes_;
};

// Throws DamagedBytes with the reason. Allocates no more than the bytes can fill.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

  // Refuses a number below 0 or above `most`. `what`: names the number.
  template <class T>
  void check(const T& value, T most, const char* what) {
    const auto number = static_cast<std::int64_t>(value);
    if (number < 0 || number > static_cast<std::int64_t>(most)) refuse(number, what);
  }

  void finish() const {
    if (!rest_.empty()) throw DamagedBytes(left() + "over");
  }

 private:
  [[noreturn]] static void refuse(std::int64_t number, const char* what) {
    throw DamagedBytes(std::to_string(number) + " is no " + what);
  }
  std::string left() const { return std::to_string(rest_.size()) + " bytes are left "; }

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) throw DamagedBytes(left() + "where " + std::to_string(count) + " were to come");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  // The number of items that follow, each of at least one byte.
  std::size_t length() {
    const auto count = static_cast<std::size_t>(number());
    if (count > rest_.size()) throw DamagedBytes(left() + "for " + std::to_string(count) + " things");
    return count;
  }

  template <class T>
  void get(T& value) {
    if constexpr (is_number<T>) {
      const std::int64_t given = number();
      value = static_cast<T>(given);
      if (static_cast<std::int64_t>(value) != given) refuse(given, "number of this type");
    } else if constexpr (std::is_same_v<T, double>) {
      value = std::bit_cast<double>(number());
    } else if constexpr (Duration<T>) {
      value = T(number());
    } else if constexpr (TimePoint<T>) {
      typename T::duration since{};
      get(since);
      value = T(since);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = take(length());
    } else if constexpr (is_vector<T>) {
      value.clear();
      for (std::size_t count = length(); count > 0; --count) {
        typename T::value_type each{};
        get(each);
        value.push_back(std::move(each));
      }
    } else if constexpr (is_optional<T>) {
      bool there = false;
      get(there);
      if (there) get(value.emplace());
    } else if constexpr (is_variant<T>) {
      get_alternative(value, number(), std::make_index_sequence<std::variant_size_v<T>>());
    } else {
      fields(*this, value);
    }
  }

  template <class T, std::size_t... I>
  void get_alternative(T& value, std::int64_t index, std::index_sequence<I...>) {
    const bool is_known = ((index == I ? (get(value.template emplace<I>()), true) : false) || ...);
    if (!is_known) refuse(index, "known alternative");
  }

  std::string_view rest_;
};

template <class T>
std::string packed(const T& value) {
  Packer packer;
  packer(value);
  return packer.take();
}

// Throws DamagedBytes with `what`, which names the bytes in the error, and the reason.
template <class T>
T unpacked(std::string_view bytes, std::string_view what) {
  try {
    T value{};
    Unpacker unpacker(bytes);
    unpacker(value);
    unpacker.finish();
    return value;
  } catch (const DamagedBytes& error) {
    throw DamagedBytes(std::string(what) + " is damaged: " + error.what());
  }
}

}  // namespace rehearse::archive
