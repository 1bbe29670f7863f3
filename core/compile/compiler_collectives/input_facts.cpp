// SPDX-License-Identifier: BSD-3-Clause
#include "input_facts.h"

#include <bit>
#include <limits>

#include "byte_stream.h"

namespace rehearse::compiler {
namespace {

constexpr std::size_t kBytesOfANumber = 8;
constexpr std::size_t kLeastBytesOfAFact = 7 * kBytesOfANumber;
constexpr std::uint64_t kMostOfASize = std::numeric_limits<std::int64_t>::max();

void write(ByteWriter& writer, const InputFact& fact) {
  writer.text(fact.source);
  writer.number(static_cast<std::uint64_t>(fact.kind));
  writer.number(static_cast<std::uint64_t>(fact.dtype));
  writer.number(fact.sizes.size());
  for (const auto size : fact.sizes) writer.number(static_cast<std::uint64_t>(size));
  writer.number(static_cast<std::uint64_t>(fact.int_value));
  writer.number(std::bit_cast<std::uint64_t>(fact.float_value));
  writer.text(fact.text);
}

InputFact read(ByteReader& reader) {
  InputFact fact;
  fact.source = reader.text();
  fact.kind = static_cast<InputFact::Kind>(
      reader.number_up_to(static_cast<std::uint64_t>(InputFact::Kind::Absent), "kind of input"));
  fact.dtype = static_cast<c10::ScalarType>(
      reader.number_up_to(static_cast<std::uint64_t>(c10::ScalarType::NumOptions) - 1, "dtype"));
  fact.sizes.resize(reader.count(kBytesOfANumber));
  for (auto& size : fact.sizes) size = static_cast<std::int64_t>(reader.number_up_to(kMostOfASize, "size"));
  fact.int_value = static_cast<std::int64_t>(reader.number());
  fact.float_value = std::bit_cast<double>(reader.number());
  fact.text = reader.text();
  return fact;
}

}  // namespace

std::string encode(const InputFacts& facts) {
  ByteWriter writer;
  writer.number(facts.size());
  for (const auto& fact : facts) write(writer, fact);
  return writer.take();
}

InputFacts decode_facts(std::string_view bytes, const std::string& sender) {
  ByteReader reader(bytes, sender);
  InputFacts facts(reader.count(kLeastBytesOfAFact));
  for (auto& fact : facts) fact = read(reader);
  reader.finish();
  return facts;
}

}  // namespace rehearse::compiler
