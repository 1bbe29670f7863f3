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
constexpr std::uint64_t kRunsOnce = 2;

bool runs_once(const CompileOutcome& outcome) { return std::holds_alternative<RunsOnce>(outcome); }

}  // namespace

std::string encode(const CompileOutcome& outcome) {
  ByteWriter writer;
  if (const auto* const hash = std::get_if<GraphHash>(&outcome)) {
    writer.number(kCompiled);
    writer.number(hash->value);
  } else if (const auto* const once = std::get_if<RunsOnce>(&outcome)) {
    writer.number(kRunsOnce);
    writer.text(once->refusal);
  } else {
    writer.number(kFailed);
    writer.text(std::get<ErrorText>(outcome).text);
  }
  return writer.take();
}

CompileOutcome decode_outcome(std::string_view bytes, const std::string& sender) {
  ByteReader reader(bytes, sender);
  CompileOutcome outcome;
  switch (reader.number_up_to(kRunsOnce, "outcome")) {
    case kCompiled:
      outcome = GraphHash{reader.number()};
      break;
    case kFailed:
      outcome = ErrorText{reader.text()};
      break;
    default:
      outcome = RunsOnce{reader.text()};
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
    if (const auto* const hash = std::get_if<GraphHash>(&outcomes[i])) hashes.push_back(*hash);
  }
  if (std::any_of(outcomes.begin(), outcomes.end(), runs_once)) return {};
  return hashes;
}

std::string first_refusal(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto* const once = std::get_if<RunsOnce>(&outcomes[i]);
    if (once && !once->refusal.empty()) return fmt::format("rank {} cannot capture it: {}", ranks.at(i), once->refusal);
  }
  return "";
}

}  // namespace rehearse::compiler
