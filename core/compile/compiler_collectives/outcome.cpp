// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/exec/check.h>

#include "byte_stream.h"
#include "compiler_collectives.h"

namespace rehearse::compiler {
namespace {

constexpr std::uint64_t kCompiled = 0;
constexpr std::uint64_t kFailed = 1;

}  // namespace

std::string encode(const CompileOutcome& outcome) {
  ByteWriter writer;
  if (const auto* const hash = std::get_if<GraphHash>(&outcome)) {
    writer.number(kCompiled);
    writer.number(hash->value);
  } else {
    writer.number(kFailed);
    writer.text(std::get<ErrorText>(outcome).text);
  }
  return writer.take();
}

CompileOutcome decode_outcome(std::string_view bytes, const std::string& sender) {
  ByteReader reader(bytes, sender);
  CompileOutcome outcome;
  if (reader.number_up_to(kFailed, "outcome") == kCompiled) {
    outcome = GraphHash{reader.number()};
  } else {
    outcome = ErrorText{reader.text()};
  }
  reader.finish();
  return outcome;
}

std::vector<GraphHash> agree(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks,
                             const CollectiveLabel& label) {
  REHEARSE_CHECK(outcomes.size() == ranks.size(), outcomes.size(), ranks.size(), label.function);
  const auto failed = [](const CompileOutcome& outcome) { return std::holds_alternative<ErrorText>(outcome); };
  if (std::all_of(outcomes.begin(), outcomes.end(), failed)) return {};
  std::vector<GraphHash> hashes;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (const auto* const error = std::get_if<ErrorText>(&outcomes[i])) {
      throw CompileError(fmt::format("rank {} could not compile {}{}{}: {}", ranks[i], label.function,
                                     label.line.empty() ? "" : " for the call at ", label.line, error->text));
    }
    hashes.push_back(std::get<GraphHash>(outcomes[i]));
  }
  return hashes;
}

}  // namespace rehearse::compiler
