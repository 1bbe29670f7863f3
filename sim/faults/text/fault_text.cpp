// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>

#include "fault_fields.h"

namespace rehearse {
namespace sim {
namespace {

using Verb = Fault::Verb;

Verb verb_of(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& verb : fault_verbs()) {
    if (verb.name == name) return verb.verb;
    names.emplace_back(verb.name);
  }
  throw FaultError(fmt::format("there is no fault {}{}; there are {}", in_quotes(name), did_you_mean(name, names),
                               fmt::join(names, ", ")));
}

const FaultField& field_of(Verb verb, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& field : fault_fields()) {
    if (!has(field, verb)) continue;
    if (field.name == name) return field;
    names.emplace_back(field.name);
  }
  throw FaultError(fmt::format("{} takes no {}{}; it takes {}", to_string(verb), in_quotes(name),
                               did_you_mean(name, names), fmt::join(names, ", ")));
}

// Splits at blanks outside quotes, as in label="layer 1".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (!quoted && (c == ' ' || c == '\t')) {
      if (any) words.push_back(std::move(word));
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (quoted) throw FaultError(fmt::format("{} has a quote that does not end", in_quotes(text)));
  if (any) words.push_back(std::move(word));
  return words;
}

}  // namespace

Fault make_fault(std::string_view verb, const std::vector<std::pair<std::string, std::string>>& fields) {
  Fault fault;
  fault.verb = verb_of(verb);
  std::set<std::string> seen;
  for (const auto& [name, value] : fields) {
    const auto& field = field_of(fault.verb, name);
    if (!seen.insert(name).second) throw FaultError(fmt::format("{} is there twice", name));
    if (field.read(fault, value)) continue;
    const auto meant = field.meant ? field.meant(fault, value) : "";
    throw FaultError(fmt::format("{} is {}{}; it takes {}", name, in_quotes(value),
                                 meant.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", meant), field.takes));
  }
  return fault;
}

namespace {

Fault parsed(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty()) throw FaultError("a fault is empty; write it as \"crash rank=3 at=allreduce#12\"");
  std::vector<std::pair<std::string, std::string>> fields;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto sign = words[i].find('=');
    if (sign == std::string::npos) {
      throw FaultError(
          fmt::format("{} is not key=value; write a fault as \"crash rank=3 at=allreduce#12\"", in_quotes(words[i])));
    }
    fields.emplace_back(words[i].substr(0, sign), words[i].substr(sign + 1));
  }
  return make_fault(words.front(), fields);
}

}  // namespace
}  // namespace sim

Fault parse_fault(std::string_view text) {
  auto fault = sim::parsed(text);
  sim::require_whole(fault);
  return fault;
}

Fault parse_fault_family(std::string_view text) {
  auto fault = sim::parsed(text);
  sim::require_family(fault);
  return fault;
}

std::string to_string(const Fault& fault) {
  std::string text(sim::to_string(fault.verb));
  for (const auto& field : sim::fault_fields()) {
    const auto value = sim::has(field, fault.verb) ? field.print(fault) : "";
    if (value.empty()) continue;
    const bool plain = value.find_first_of(" \t") == std::string::npos;
    text += plain ? fmt::format(" {}={}", field.name, value) : fmt::format(" {}=\"{}\"", field.name, value);
  }
  return text;
}

}  // namespace rehearse
