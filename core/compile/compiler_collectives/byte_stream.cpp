// SPDX-License-Identifier: BSD-3-Clause
#include "byte_stream.h"

#include <fmt/format.h>

#include <rehearse/compile/errors.h>

namespace rehearse::compiler {
namespace {

constexpr std::size_t kNumberBytes = 8;

}  // namespace

void damaged(std::string_view why, const std::string& sender) {
  throw CompileError(fmt::format("what {} sent about a compilation is damaged: {}", sender, why));
}

void ByteWriter::number(std::uint64_t value) {
  for (std::size_t i = 0; i < kNumberBytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

void ByteWriter::text(std::string_view value) {
  number(value.size());
  bytes_ += value;
}

std::string_view ByteReader::take(std::size_t bytes) {
  if (bytes > rest_.size()) {
    damaged(fmt::format("{} bytes are left where {} were to come", rest_.size(), bytes), sender_);
  }
  const auto taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::uint64_t ByteReader::number() {
  const auto bytes = take(kNumberBytes);
  std::uint64_t value = 0;
  for (std::size_t i = kNumberBytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::uint64_t ByteReader::number_up_to(std::uint64_t most, const char* what) {
  const auto value = number();
  if (value > most) damaged(fmt::format("{} is no {}", value, what), sender_);
  return value;
}

std::size_t ByteReader::count(std::size_t bytes_of_each) {
  const auto value = number();
  if (value > rest_.size() / bytes_of_each) {
    damaged(fmt::format("{} bytes are left for {} things", rest_.size(), value), sender_);
  }
  return value;
}

std::string ByteReader::text() { return std::string(take(count(1))); }

void ByteReader::finish() const {
  if (!rest_.empty()) damaged(fmt::format("{} bytes are left over", rest_.size()), sender_);
}

}  // namespace rehearse::compiler
