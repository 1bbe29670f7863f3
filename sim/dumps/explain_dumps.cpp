// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/explain_dumps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dumps/dump_files.h"
#include "dumps/dumped_job.h"
#include "dumps/job_diagnosis.h"
#include "dumps/rank_diagnoses.h"
#include "report/calls/differences.h"
#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

// For example "nccl 2.28.9"; empty if there are no calls.
std::string transport_of(const std::vector<Dump>& dumps) {
  for (const auto& dump : dumps) {
    if (dump.calls.empty()) continue;
    const auto& backend = dump.calls.front().backend;
    return dump.library.empty() ? backend : fmt::format("{} {}", backend, dump.library);
  }
  return "";
}

std::vector<Difference> differences_of(const JobDiagnosis& diagnosis, const Stacks& stacks) {
  std::vector<Difference> differences;
  if (const auto& creation = diagnosis.creations().mismatch)
    differences.push_back(difference_of(*creation, [](const comm::Mismatch::Side&) { return Place(); }));
  for (const auto* const group : diagnosis.mismatches()) {
    const auto where = [&](const comm::Mismatch::Side& side) {
      const auto call = group->sides.find(side.rank);
      return call == group->sides.end() ? Place() : stacks.place(call->second.call->stack);
    };
    differences.push_back(difference_of(*group->mismatch, where));
  }
  return differences;
}

// Leaves out ranks that no dump tells about: they may be at fault, but nobody knows.
std::vector<int> known_culprits(const Report& report, const JobDiagnosis& diagnosis) {
  auto culprits = culprits_of(report);
  std::erase_if(culprits, [&](int rank) { return diagnosis.unknown().contains(rank); });
  return culprits;
}

}  // namespace

Report explain_dumps(const std::vector<Dump>& dumps, const Stacks& stacks) {
  const DumpedJob job(dumps);
  const JobDiagnosis diagnosis(job, stacks);
  Report report;
  diagnosis.result().write_into(report);
  report.ranks = job.ranks();
  report.schedule = "real";
  report.version = REHEARSE_VERSION;
  report.transport = transport_of(dumps);
  report.operations = job.calls();
  report.rank_lines = rank_lines_of(job, diagnosis, stacks);
  report.differences = differences_of(diagnosis, stacks);
  report.remarks = remarks_of_dumps(job, diagnosis);
  auto culprits = known_culprits(report, diagnosis);
  auto& facts = report.dumps.emplace();
  facts.format = dumps.front().version;
  for (const auto& dump : dumps) facts.ranks.push_back(dump.rank);
  facts.without_dump = job.without_dump();
  facts.culprits = std::move(culprits);
  facts.stacks = stacks_of(job, diagnosis, stacks, facts.culprits);
  if (std::all_of(dumps.begin(), dumps.end(), [](const Dump& dump) {
        return std::all_of(dump.calls.begin(), dump.calls.end(),
                           [](const DumpedCall& call) { return call.stack == Stacks::kNone; });
      })) {
    report.hint = "the dumps hold no stacks, as JSON does not; pickles do, and TORCH_FR_CPP_STACK=1 adds those of C++";
  }
  return report;
}

Report explain_dumps(const std::vector<std::string>& paths) {
  Stacks stacks;
  const auto dumps = read_dumps(paths, stacks);
  return explain_dumps(dumps, stacks);
}

}  // namespace rehearse::sim
