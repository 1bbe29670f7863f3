// SPDX-License-Identifier: BSD-3-Clause
#include "checks/local_checks.h"

#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "checks/finite.h"
#include "checks/gradients.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

struct Counts {
  std::uint64_t gradients = 0;
  std::uint64_t finite = 0;
};

const exec::FiberLocal<Counts> g_counts;

// By `"name" of dtype[sizes]`: the hash of a tensor, and its value if it is one number.
using Entries = std::map<std::string, std::string>;

Entries entries_of(const std::vector<ModelState>& parts) {
  const Unwatched own;
  Entries entries;
  for (const auto& part : parts) {
    for (const auto& each : part.tensors()) {
      if (!each.tensor.defined()) continue;
      const auto tensor = plain(each.tensor);
      auto name = fmt::format("\"{}\" of {}[{}]", name_in_table(each), c10::toString(tensor.scalar_type()),
                              fmt::join(tensor.sizes(), ", "));
      while (entries.contains(name)) name += '\'';
      const bool is_number = tensor.numel() == 1 && !tensor.is_complex();
      entries[name] =
          fmt::format("{}hash {:016x}", is_number ? fmt::format("{}, ", tensor.item<double>()) : "", hash_of(tensor));
    }
  }
  return entries;
}

// Adds the record's entries under its rank. Returns how many ranks have saved.
int read_record(const std::string& record, std::map<int, Entries>& saved) {
  std::istringstream lines(record);
  std::string word, line;
  int rank = 0, ranks = 0;
  if (!(lines >> word >> rank >> word >> ranks)) {
    throw std::invalid_argument("RankContext::check_saved() was given a text that saved_record() has not made: " +
                                record.substr(0, 40));
  }
  std::getline(lines, line);
  auto& entries = saved[rank];
  while (std::getline(lines, line)) entries[line.substr(line.find('\t') + 1)] = line.substr(0, line.find('\t'));
  return ranks;
}

}  // namespace

std::optional<StateFinding> gradients_here(int rank, int ranks, const ModelState& state, const at::Generator& generator,
                                           const std::function<at::Tensor()>& loss, const CheckOptions& options) {
  GradientsRound round;
  round.name = options.name.empty() ? kGradients : options.name;
  round.number = ++g_counts->gradients;
  round.of = ranks_below(options.ranks.empty() ? ranks : static_cast<int>(options.ranks.size()));
  round.here = {rank};
  {
    const Unwatched own;
    round.shown.table.add(rank, gradients_of(state));
  }
  const auto reference = reference_gradients(state, generator, loss);
  const Unwatched own;
  return evaluate(round, gradients_of(state), reference, options.tolerance, nullptr);
}

std::optional<StateFinding> finite_here(int rank, const ModelState& state, const CheckOptions& options) {
  const Unwatched own;
  auto found =
      first_non_finite(state, options.buffers, rank, options.name.empty() ? kFinite : options.name, ++g_counts->finite);
  if (!found) return std::nullopt;
  return std::move(found->finding);
}

// A record has the line "rank <rank> of <ranks>", and for each tensor a line with its text, a tabulator and its name.
std::string record_of(int rank, int ranks, const std::vector<ModelState>& parts) {
  auto record = fmt::format("rank {} of {}\n", rank, ranks);
  for (const auto& [name, text] : entries_of(parts)) record += fmt::format("{}\t{}\n", text, name);
  return record;
}

std::string unlike_saved(const std::vector<std::string>& records, int rank, int ranks,
                         const std::vector<ModelState>& parts) {
  std::map<int, Entries> saved;  // by rank
  int of = 0;
  for (const auto& record : records) of = read_record(record, saved);
  if (of == 0 || saved.size() != static_cast<std::size_t>(of))
    return fmt::format("there are records of {} of {} ranks: each rank that saves makes one", saved.size(), of);
  const bool is_own = of == ranks;
  if (is_own) saved = {{rank, std::move(saved.at(rank))}};
  std::vector<std::string> wrong, not_compared;
  const auto here = entries_of(parts);
  for (const auto& [name, text] : here) {
    std::set<std::string> texts;
    for (const auto& [by, entries] : saved) {
      if (const auto entry = entries.find(name); entry != entries.end()) texts.insert(entry->second);
    }
    if (texts.size() != 1) {
      is_own ? wrong.push_back(name + " was not saved") : not_compared.push_back(name);
    } else if (*texts.begin() != text) {
      wrong.push_back(fmt::format("{} is {}, and was saved as {}", name, text, *texts.begin()));
    }
  }
  for (const auto& [name, text] : saved.begin()->second) {
    if (is_own && !here.contains(name)) wrong.push_back(name + " was saved, and is missing");
  }
  if (auto* const remarks = rank_remarks(); remarks != nullptr && !not_compared.empty()) {
    remarks->remark(rank,
                    fmt::format("check_saved() did not compare {}: the {} ranks that saved had different values or "
                                "other rows",
                                fmt::join(not_compared, ", "), of));
  }
  return wrong.size() > 1 ? fmt::format("{}; {} more differ", wrong.front(), wrong.size() - 1)
                          : fmt::format("{}", fmt::join(wrong, ""));
}

std::string text_of(const StateFinding& finding) {
  std::string text = finding.headline;
  for (const auto& line : finding.details) text += "\n" + line;
  return text;
}

}  // namespace rehearse::checks
