// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <rehearse/exec/time.h>

// Turns values into bytes and back, between processes of one executable, which trust each other. For each struct, a
// function fields(archive, value) passes to the archive the fields that travel. This function serves both directions.
namespace rehearse::real {

using Bytes = std::vector<std::uint8_t>;

namespace archive {

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

}  // namespace archive

class Packer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  Bytes take() { return std::move(bytes_); }

 private:
  void number(std::int64_t value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  template <class T>
  void put(const T& value) {
    if constexpr (archive::is_number<T>) {
      number(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, double>) {
      number(std::bit_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, VirtualTime>) {
      number(value.time_since_epoch().count());
    } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
      number(value.count());
    } else if constexpr (std::is_same_v<T, std::string>) {
      number(static_cast<std::int64_t>(value.size()));
      bytes_.insert(bytes_.end(), value.begin(), value.end());
    } else if constexpr (archive::is_vector<T>) {
      number(static_cast<std::int64_t>(value.size()));
      for (const auto& each : value) put(each);
    } else if constexpr (archive::is_optional<T>) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (archive::is_variant<T>) {
      number(static_cast<std::int64_t>(value.index()));
      std::visit([this](const auto& each) { put(each); }, value);
    } else {
      fields(*this, const_cast<T&>(value));  // fields() is shared with Unpacker; here it only reads
    }
  }

  Bytes bytes_;
};

// Throws std::runtime_error if the bytes end too early, or name no alternative of a variant.
class Unpacker {
 public:
  explicit Unpacker(const Bytes& bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

 private:
  const std::uint8_t* take(std::size_t count) {
    if (bytes_.size() - at_ < count) throw std::runtime_error("a message between ranks is cut off");
    return bytes_.data() + std::exchange(at_, at_ + count);
  }

  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }

  // The number of items that follow, each at least one byte long. The check keeps a wrong number from allocating all
  // memory.
  std::size_t length() {
    const auto count = static_cast<std::size_t>(number());
    if (count > bytes_.size() - at_) throw std::runtime_error("a message between ranks is cut off");
    return count;
  }

  template <class T>
  void get(T& value) {
    if constexpr (archive::is_number<T>) {
      value = static_cast<T>(number());
    } else if constexpr (std::is_same_v<T, double>) {
      value = std::bit_cast<double>(number());
    } else if constexpr (std::is_same_v<T, VirtualTime>) {
      value = kTimeZero + VirtualDuration(number());
    } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
      value = std::chrono::milliseconds(number());
    } else if constexpr (std::is_same_v<T, std::string>) {
      const auto size = length();
      const auto* const text = reinterpret_cast<const char*>(take(size));
      value.assign(text, text + size);
    } else if constexpr (archive::is_vector<T>) {
      value.resize(length());
      for (auto& each : value) get(each);
    } else if constexpr (archive::is_optional<T>) {
      bool there = false;
      get(there);
      if (there) get(value.emplace());
    } else if constexpr (archive::is_variant<T>) {
      const auto index = static_cast<std::size_t>(number());
      get_alternative(value, index, std::make_index_sequence<std::variant_size_v<T>>());
    } else {
      fields(*this, value);
    }
  }

  template <class T, std::size_t... I>
  void get_alternative(T& value, std::size_t index, std::index_sequence<I...>) {
    const bool known = ((index == I ? (get(value.template emplace<I>()), true) : false) || ...);
    if (!known) throw std::runtime_error("a message between ranks is of no known kind");
  }

  const Bytes& bytes_;
  std::size_t at_ = 0;
};

template <class T>
Bytes packed(const T& value) {
  Packer packer;
  packer(value);
  return packer.take();
}

template <class T>
T unpacked(const Bytes& bytes) {
  T value{};
  Unpacker unpacker(bytes);
  unpacker(value);
  return value;
}

}  // namespace rehearse::real
