// SPDX-License-Identifier: BSD-3-Clause
#include "input_facts.h"

#include <limits>

#include "message.h"

namespace rehearse::compiler {

template <class Archive>
static void fields(Archive& archive, InputFact& fact) {
  archive(fact.source, fact.kind, fact.dtype, fact.sizes, fact.int_value, fact.float_value, fact.text);
  archive.check(fact.kind, InputFact::Kind::Absent, "kind of input");
  archive.check(fact.dtype, static_cast<c10::ScalarType>(static_cast<int>(c10::ScalarType::NumOptions) - 1), "dtype");
  for (const std::int64_t size : fact.sizes) archive.check(size, std::numeric_limits<std::int64_t>::max(), "size");
}

std::string encode(const InputFacts& facts) { return archive::packed(facts); }

InputFacts decode_facts(std::string_view bytes, const std::string& sender) {
  return received<InputFacts>(bytes, sender);
}

}  // namespace rehearse::compiler
