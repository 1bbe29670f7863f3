// SPDX-License-Identifier: BSD-3-Clause
#include "fault_plan.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/hash/word_hash.h>
#include <rehearse_internal/comm/op_table.h>
#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "faults/text/fault_fields.h"
#include "faults/transfers/corruption.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kNamesShown = 8;
constexpr std::size_t kNumbersShown = 5;

std::string with_article(std::string_view name) {
  const bool is_vowel = std::string_view("aeiou").find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", is_vowel ? "an" : "a", name);
}

template <class Names>
std::string listed(const Names& names) {
  std::vector<std::string> shown;
  for (const auto& name : names) {
    if (shown.size() == kNamesShown) break;
    shown.push_back(fmt::format("\"{}\"", name));
  }
  if (names.size() > shown.size()) shown.push_back(fmt::format("and {} more", names.size() - shown.size()));
  return fmt::format("{}", fmt::join(shown, ", "));
}

// Empty: the rank is in a group with this name.
std::string about_group(const std::string& name, int rank, const std::vector<comm::EventLog::Group>& groups) {
  std::vector<std::string> names;
  const comm::EventLog::Group* other = nullptr;
  for (const auto& group : groups) {
    const bool is_member = std::ranges::find(group.ranks, rank) != group.ranks.end();
    if (group.name == name && is_member) return "";
    if (group.name == name) other = &group;
    if (std::ranges::find(names, group.name) == names.end()) names.push_back(group.name);
  }
  if (other != nullptr) return fmt::format("group \"{}\" is of {}", name, describe_ranks(other->ranks));
  return fmt::format("there is no group \"{}\"; there {} {}", name, names.size() == 1 ? "is" : "are", listed(names));
}

std::string output_of(const NearMisses::Call& call) {
  const auto elements = corruptible_elements(call.operation);
  const auto title = comm::short_title(comm::name_of(call.operation), call.sequence, call.group.name);
  if (elements == 0) return title + " brings the rank nothing";
  return fmt::format("{} brings {} element{}, 0 to {}", title, elements, elements == 1 ? "" : "s", elements - 1);
}

// The part of the text that says what happens: "corrupt with=bit" from "corrupt rank=1 at=allreduce#2 with=bit".
std::string effect_of(Fault fault) {
  if (!traits_of(fault.verb).of_sides) fault.ranks.clear();
  fault.at.reset();
  fault.call.reset();
  fault.group.clear();
  fault.label.clear();
  fault.file.clear();
  fault.after.reset();
  fault.on.reset();
  fault.p = 1;
  fault.times = 1;
  fault.optional = false;
  return to_string(fault);
}

}  // namespace

void NearMisses::look_at(const Fault& fault, const Call& call) {
  if (!fault.label.empty()) {
    const auto* const label = call.operation.label;
    const bool fits = label != nullptr && *label == fault.label;
    label_was_there_ |= fits;
    if (label != nullptr && !fits && labels_.size() <= kNamesShown) labels_.insert(*label);
    if (!fits) return;
  }
  if (!call.is_of_kind) {
    const auto name = comm::op_row(call.operation.type).name;
    const bool has_its_number = fault.at && fault.at->number > 0 && fault.at->op != name && call.has_number;
    if (!has_its_number || !other_.empty()) return;
    group_of_other_ = call.group.id;
    other_ = fmt::format("#{} on group \"{}\" was {}", call.sequence, call.group.name, with_article(name));
    return;
  }
  ++calls_;
  auto& numbers = of_kind_[call.group.id];
  ++numbers.count;
  if (numbers.first.size() < kNumbersShown) numbers.first.push_back(call.sequence);
  const bool is_corrupt = traits_of(fault.verb).takes == FaultTraits::Takes::data;
  if (is_corrupt && call.has_number && output_.empty() && !can_corrupt(call.operation, fault))
    output_ = output_of(call);
}

std::string NearMisses::text(const Fault& fault, int rank, const std::vector<comm::EventLog::Group>& groups) const {
  auto text = fault.group.empty() ? "" : about_group(fault.group, rank, groups);
  if (text.empty()) text = refused_;
  if (text.empty()) text = output_;
  if (text.empty()) text = about_label(fault);
  return text.empty() ? about_number(fault) : text;
}

std::string NearMisses::about_label(const Fault& fault) const {
  if (fault.label.empty() || label_was_there_) return "";
  if (labels_.empty()) return "no call had a label of the program (RankContext::label)";
  return fmt::format("no call had the label \"{}\"; there {} {}", fault.label, labels_.size() == 1 ? "is" : "are",
                     listed(labels_));
}

// For example "#2 on group "world" was an allreduce; barriers were #1, #3; call=barrier#2 counts them alone".
std::string NearMisses::about_number(const Fault& fault) const {
  if (other_.empty() || fault.at->op.empty()) return other_;
  const auto& op = fault.at->op;
  const auto found = of_kind_.find(group_of_other_);
  if (found == of_kind_.end()) return fmt::format("{}; no {} was there", other_, op);
  const auto& numbers = found->second;
  std::vector<std::string> shown;
  for (const auto number : numbers.first) shown.push_back(fmt::format("#{}", number));
  if (numbers.count > shown.size()) shown.push_back(fmt::format("and {} more", numbers.count - shown.size()));
  const bool has_so_many = fault.at->number <= calls_;
  return fmt::format("{}; {}{} {}{}", other_, op, numbers.count == 1 ? " was" : "s were", fmt::join(shown, ", "),
                     has_so_many ? fmt::format("; call={}#{} counts them alone", op, fault.at->number) : "");
}

bool is_of(const Fault& fault, int rank) {
  return fault.ranks.empty() || std::ranges::find(fault.ranks, rank) != fault.ranks.end();
}

bool needs_no_call(const Fault& fault) {
  const bool of_calls = fault.at || fault.call || !fault.group.empty() || !fault.label.empty();
  return traits_of(fault.verb).alone && (fault.after || fault.on) && !of_calls && fault.p == 1;
}

std::optional<VirtualTime> due(const Fault& fault, const std::vector<FaultPlan>& plans) {
  auto since = kTimeZero;
  if (fault.on) {
    const auto& other = plans[*fault.on - 1].line;
    if (other.fired.empty()) return std::nullopt;
    since = other.fired.front().at;
  }
  return later(since, fault.after.value_or(VirtualDuration::zero()));
}

std::uint64_t hash_of(const std::vector<FaultPlan>& plans) {
  WordHash hash(0);
  for (const auto& plan : plans) {
    if (plan.line.times == 0) continue;
    hash.add(effect_of(*plan.fault));
    hash.add(plan.line.times);
    for (const auto& firing : plan.line.fired) {
      hash.add(static_cast<std::uint64_t>(firing.rank));
      hash.add(firing.call);
      hash.add(static_cast<std::uint64_t>(firing.at.time_since_epoch().count()));
    }
  }
  return hash.value();
}

}  // namespace rehearse::sim
