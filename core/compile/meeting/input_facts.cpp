// SPDX-License-Identifier: BSD-3-Clause
#include "input_facts.h"

#include <bit>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>

#include "byte_stream.h"

namespace rehearse::compiler {
namespace {

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
  const auto kind = reader.number();
  if (kind > static_cast<std::uint64_t>(InputFact::Kind::Absent)) {
    throw CompileError(
        fmt::format("what another rank sent about a compilation is damaged: {} is no kind of input", kind));
  }
  fact.kind = static_cast<InputFact::Kind>(kind);
  fact.dtype = static_cast<c10::ScalarType>(reader.number());
  fact.sizes.resize(reader.count());
  for (auto& size : fact.sizes) size = static_cast<std::int64_t>(reader.number());
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

InputFacts decode_facts(std::string_view bytes) {
  ByteReader reader(bytes);
  InputFacts facts(reader.count());
  for (auto& fact : facts) fact = read(reader);
  reader.finish();
  return facts;
}

}  // namespace rehearse::compiler
