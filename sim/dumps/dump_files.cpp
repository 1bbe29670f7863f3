// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/dump_files.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/sim/input_file.h>

#include "dumps/dump_field.h"
#include "dumps/pickle.h"
#include "dumps/read_dump.h"

namespace rehearse::sim {
namespace {

constexpr char kPickleBegins = '\x80';
constexpr std::size_t kBytesMost = std::size_t{256} << 20;

// The name of a dump, split: "nccl_trace_rank_3.pickle" belongs to rank 3. Dumps of one job share the text before the
// rank.
struct RankedName {
  std::string before;
  int rank = -1;
};

std::optional<RankedName> ranked(const std::filesystem::path& file) {
  const auto stem = file.stem().string();
  auto digits = stem.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(stem[digits - 1])) != 0) --digits;
  if (digits == stem.size()) return std::nullopt;
  RankedName name{stem.substr(0, digits)};
  const auto [end, error] = std::from_chars(stem.data() + digits, stem.data() + stem.size(), name.rank);
  if (error != std::errc()) name.rank = std::numeric_limits<int>::max();  // the reader refuses this rank
  return name;
}

std::size_t bytes_most(std::string_view beginning) { return may_be_dump(beginning) ? kBytesMost : 0; }

std::string bytes_of(const std::filesystem::path& file) {
  try {
    return read_input(file, "flight recorder's dump", bytes_most);
  } catch (const InputError& error) {
    throw DumpError(error.what());
  }
}

Json value_of(const std::string& bytes) {
  if (bytes.starts_with(kPickleBegins)) return unpickled(bytes);
  if (!may_be_dump(bytes)) throw DumpError("is neither a pickle nor JSON");
  try {
    return parse_json(bytes);
  } catch (const JsonSyntaxError& error) {
    throw DumpError(fmt::format("is not JSON, see byte {}", error.byte));
  }
}

void read_file(const std::filesystem::path& file, const std::string& bytes, Stacks& stacks, std::vector<Dump>& dumps) {
  const auto name = file.string();
  try {
    const auto value = value_of(bytes);
    const Field whole(value);
    if (is_of_all_ranks(whole)) {
      auto all = read_dumps_of_all_ranks(whole, name, stacks);
      std::move(all.begin(), all.end(), std::back_inserter(dumps));
      return;
    }
    const auto of = ranked(file);
    if (of && of->rank >= kDumpedRanksMost)
      throw DumpError(
          fmt::format("is of rank {} by its name; right would be one below {}", of->rank, kDumpedRanksMost));
    if (!of)
      throw DumpError(
          "does not say of which rank it is; right would be a name that ends so, as in dump_rank_3. (A "
          "report.json or run.rlog is explained alone.)");
    dumps.push_back(read_dump(whole, name, of->rank, stacks));
  } catch (const PickleError& error) {
    throw DumpError(fmt::format("{}: {}", name, error.what()));
  } catch (const DumpError& error) {
    throw DumpError(fmt::format("{}: {}", name, error.what()));
  }
}

struct NamedFile {
  std::filesystem::path path;
  bool is_dump = false;  // judged by its first byte
};
// Files by the part that their names share.
using JobsOfFolder = std::map<std::string, std::vector<NamedFile>>;

bool is_empty(const NamedFile& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file.path, ignored) && std::filesystem::file_size(file.path, ignored) == 0;
}

// A rank that died while it wrote its dump leaves an empty file.
void refuse_if_empty(const JobsOfFolder::value_type& job) {
  for (const auto& file : job.second) {
    if (is_empty(file))
      throw DumpError(
          fmt::format("{}: is empty, and no dump lies beside it; right would be a pickle or JSON", file.path.string()));
  }
}

bool begins_as_dump(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  if (!entry.is_regular_file(ignored)) return false;
  return may_be_dump(read_input(entry.path(), "dump", [](std::string_view) { return 0; }));
}

JobsOfFolder jobs_in(const std::filesystem::path& folder) {
  JobsOfFolder jobs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (const auto name = ranked(entry.path()))
      jobs[name->before + "*" + entry.path().extension().string()].push_back({entry.path(), begins_as_dump(entry)});
  }
  if (error) throw DumpError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  // Logs and other files lie in the folder, too. But if one file is a dump, all files with names like it are dumps.
  const auto has_dump = [](const auto& job) {
    return std::ranges::any_of(job.second, [](const NamedFile& file) { return file.is_dump; });
  };
  if (std::ranges::none_of(jobs, has_dump)) std::for_each(jobs.begin(), jobs.end(), refuse_if_empty);
  std::erase_if(jobs, [&](const auto& job) { return !has_dump(job); });
  return jobs;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  const auto jobs = jobs_in(folder);
  if (jobs.empty()) {
    throw DumpError(
        fmt::format("{}: has no dumps, which are pickles or JSON with names that end in a rank, as in "
                    "dump_rank_3",
                    folder.string()));
  }
  if (jobs.size() > 1) {
    throw DumpError(fmt::format("{0}: has dumps of different names, {1} and {2}: give those of one job, as in {0}/{1}",
                                folder.string(), jobs.begin()->first, std::next(jobs.begin())->first));
  }
  std::vector<std::filesystem::path> files;
  for (const auto& [path, is_dump] : jobs.begin()->second) {
    if (!is_dump) {
      throw DumpError(
          fmt::format("{}: is named as a dump of {}, and is neither a pickle nor JSON. Give the others by "
                      "name if it is lost",
                      path.string(), jobs.begin()->first));
    }
    files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

void refuse_same_ranks(const std::vector<Dump>& dumps) {
  for (std::size_t i = 1; i < dumps.size(); ++i) {
    if (dumps[i].rank != dumps[i - 1].rank) continue;
    throw DumpError(fmt::format("{}: is of rank {}, and so is {}: give each rank's dump once", dumps[i].file,
                                dumps[i].rank, dumps[i - 1].file));
  }
}

}  // namespace

bool may_be_dump(std::string_view beginning) {
  return beginning.starts_with(kPickleBegins) || beginning.starts_with('{');
}

bool is_dump(std::string_view bytes) {
  if (bytes.starts_with(kPickleBegins)) return true;
  if (!may_be_dump(bytes)) return false;
  try {
    const auto value = parse_json(bytes);
    return value.contains("entries") || value.contains("pg_config");
  } catch (const JsonSyntaxError&) {
    return false;
  }
}

std::vector<Dump> read_dumps(const std::vector<std::string>& paths, Stacks& stacks) {
  std::vector<Dump> dumps;
  for (const auto& path : paths) {
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    const auto files = is_folder ? files_in(path) : std::vector<std::filesystem::path>{path};
    for (const auto& file : files) read_file(file, bytes_of(file), stacks, dumps);
  }
  std::ranges::stable_sort(dumps, [](const Dump& a, const Dump& b) { return a.rank < b.rank; });
  refuse_same_ranks(dumps);
  return dumps;
}

}  // namespace rehearse::sim
