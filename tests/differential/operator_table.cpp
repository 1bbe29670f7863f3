// SPDX-License-Identifier: BSD-3-Clause
// The table of operators: what compile() does with each operator that the CPU can run.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <rehearse_internal/capture/sampled_operators.h>
#include <rehearse_internal/libtorch/version.h>

#include "differential/operators/trial.h"
#include "differential/run/child.h"
#include "differential/run/finding.h"

namespace rehearse_test::differential {
namespace {

constexpr int kSecondsMax = 60;
constexpr std::size_t kCrashesMost = 40;
constexpr int kNewest = 99;  // the minor version after all that the file names
constexpr const char* kColumns[] = {"captured",  "runs eagerly", "refused", "throws", "not for dense CPU tensors",
                                    "no samples"};

struct Options {
  std::string table, only, fate, page, write_sampled;
  bool write = false, show = false, detail = false;
  int part = 1, parts = 1;
};

// One line of the table: family, name and fate. The other fields are not in the file. A line of the file may have a
// fourth field: the minor versions of LibTorch for which it holds ("since 2.12", "until 2.14", or both).
struct Row {
  std::string family, name, fate, samples, why, sampled, detail;

  std::string key() const { return family + "\t" + name + "\t" + fate; }
};

// Memory that this process and its children share.
TrialPlace& shared_place() {
  static TrialPlace* const place = [] {
    void* const memory = ::mmap(nullptr, sizeof(TrialPlace), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    return static_cast<TrialPlace*>(memory);
  }();
  return *place;
}

// Tries the operator in a process of its own. Leaves out arguments on which LibTorch itself crashes.
Row row_of(const c10::OperatorHandle& op, bool all_may_be_sampled) {
  TrialPlace& place = shared_place();
  Row row{family_of(op), c10::toString(op.operator_name()), "", "0", "", "", ""};
  for (std::set<int> skipped; skipped.size() < kCrashesMost; skipped.insert(place.choice)) {
    place = {};
    const ChildAnswer answer = ask_child(
        [&] {
          silence_warnings();
          std::optional<rehearse::capture::AllMayBeSampled> all;
          if (all_may_be_sampled) all.emplace();
          const Trial trial = try_operator(op, skipped, place);
          std::string sampled;
          for (const std::string& name : all ? all->seen() : std::set<std::string>()) sampled += name + " ";
          return std::string(to_string(trial.fate)) + "\t" + std::to_string(trial.samples) + "\t" + trial.why + "\n" +
                 sampled + "\n" + trial.detail;
        },
        kSecondsMax);
    row.fate = answer.signal == SIGALRM ? "hangs" : "crashes";
    if (answer.signal != 0 && place.compiles) return row;
    if (answer.signal != 0) continue;
    std::istringstream text(answer.text);
    std::getline(text, row.fate, '\t');
    std::getline(text, row.samples, '\t');
    std::getline(text, row.why);
    std::getline(text, row.sampled);
    std::getline(text, row.detail, '\0');
    return row;
  }
  row.fate = to_string(Fate::NoSamples);
  return row;
}

// The first capture of a process reads debug information, for the lines of calls. Processes that are forked later
// inherit this information.
void warm_up() {
  silence_warnings();
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::cos", "");
  try_operator(op, {}, shared_place());
}

// A line of the file. `versions`: its fourth field, which most lines do not have.
struct Line {
  std::string name, key, versions;

  bool holds_for(int minor) const {
    const auto number_after = [&](const std::string& word, int otherwise) {
      const std::size_t at = versions.find(word);
      return at == std::string::npos ? otherwise : std::stoi(versions.substr(at + word.size()));
    };
    return number_after("since 2.", 0) <= minor && minor <= number_after("until 2.", kNewest);
  }
};

std::vector<Line> read_lines(const std::string& path) {
  std::vector<Line> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t name = line.find('\t') + 1, end = line.find('\t', name);
    const std::size_t versions = std::min(line.find('\t', end + 1), line.size());
    lines.push_back(
        {line.substr(name, end - name), line.substr(0, versions), line.substr(std::min(versions + 1, line.size()))});
  }
  return lines;
}

// By name: what holds for LibTorch 2.<minor>.
std::map<std::string, std::string> lines_of(const std::string& path, int minor = rehearse::libtorch::kMinor) {
  std::map<std::string, std::string> lines;
  for (const Line& line : read_lines(path)) {
    if (line.holds_for(minor)) lines[line.name] = line.key;
  }
  return lines;
}

// Puts the rows in place of the lines that hold for this LibTorch. If a row is to hold for some versions only, add them
// to the file by hand.
int write_table(const std::string& path, const std::vector<Row>& rows) {
  std::vector<Line> lines = read_lines(path);
  for (const Row& row : rows) {
    const auto found = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return line.name == row.name && line.holds_for(rehearse::libtorch::kMinor);
    });
    if (found == lines.end()) {
      lines.push_back({row.name, row.key(), ""});
    } else {
      found->key = row.key();
    }
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return std::tie(a.name, a.versions) < std::tie(b.name, b.versions); });
  std::ofstream file(path);
  file << "# What compile() makes of each operator: family, name, fate, and LibTorch's versions if not all.\n";
  for (const Line& line : lines) file << line.key << (line.versions.empty() ? "" : "\t") << line.versions << "\n";
  return file.good() ? 0 : 1;
}

// The name alone determines the part (--part) of an operator, so that a new operator moves no other operator to another
// part.
bool is_in_part(const std::string& name, const Options& options) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int>((hash >> 32) % static_cast<std::uint64_t>(options.parts)) == options.part - 1;
}

std::vector<Row> rows(const Options& options) {
  std::vector<Row> all;
  const auto known = options.fate.empty() ? std::map<std::string, std::string>() : lines_of(options.table);
  for (const c10::OperatorHandle& op : operators_of_the_cpu()) {
    const std::string name = c10::toString(op.operator_name());
    if (name.find(options.only) == std::string::npos || !is_in_part(name, options)) continue;
    const auto line = known.find(name);
    const bool has_fate = line != known.end() && line->second.ends_with("\t" + options.fate);
    if (!options.fate.empty() && !has_fate) continue;
    all.push_back(row_of(op, !options.write_sampled.empty()));
    if (options.detail && !all.back().detail.empty()) std::cout << all.back().detail << "\n";
    const Row& row = all.back();
    if (options.show) std::cout << row.key() << "\t" << row.samples << " samples\t" << row.why << std::endl;
  }
  return all;
}

bool is_right(const Row& row) { return row.fate != "wrong" && row.fate != "crashes" && row.fate != "hangs"; }

// Returns the table of docs/COMPILE.md: how many operators of each family have each fate.
std::string families_of(const std::map<std::string, std::string>& lines) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const auto& [name, line] : lines) {
    const std::string family = line.substr(0, line.find('\t')), fate = line.substr(line.rfind('\t') + 1);
    ++counts[family][fate];
    ++counts["~"][fate];
  }
  std::ostringstream out;
  out << "| operators |";
  for (const char* fate : kColumns) out << " " << fate << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < std::size(kColumns); ++i) out << "--:|";
  out << "\n";
  for (const auto& [family, by_fate] : counts) {
    out << "| " << (family == "~" ? "all" : family) << " |";
    for (const char* fate : kColumns) {
      const auto count = by_fate.find(fate);
      out << " " << (count == by_fate.end() ? 0 : count->second) << " |";
    }
    out << "\n";
  }
  return out.str();
}

int check_page(const Options& options) {
  const std::string expected = families_of(lines_of(options.table, kNewest));
  std::ifstream file(options.page);
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().find(expected) != std::string::npos) return 0;
  std::cout << options.page << " should have this table:\n" << expected;
  return 1;
}

// Rows must equal those of the file, and no operator may give another answer than in eager mode.
int check(const Options& options, const std::vector<Row>& found) {
  const auto expected = lines_of(options.table);
  int findings = 0;
  for (const Row& row : found) {
    const auto line = expected.find(row.name);
    const bool known = line != expected.end() && line->second == row.key();
    if (known && is_right(row)) continue;
    ++findings;
    std::cout << (known ? "not as eager " : "found    ") << row.key() << "\t" << row.why << "\n";
    if (!known) std::cout << "expected " << (line == expected.end() ? "no line" : line->second) << "\n";
  }
  return findings == 0 ? 0 : 1;
}

// Returns whether the row's runs compared the operator `sampled` with eager mode: they were captured, or they ran
// eagerly and `sampled` is the row's own operator.
bool was_compared(const Row& row, const std::string& sampled) {
  if (row.fate == to_string(Fate::Captured)) return true;
  return row.fate == to_string(Fate::RunsEagerly) && row.name == sampled;
}

// Writes the list of operators for which capture::may_be_sampled() is true.
int write_sampled(const std::string& path, const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    std::istringstream sampled(row.sampled);
    for (std::string name; sampled >> name;) {
      if (was_compared(row, name)) names.insert(name);
    }
  }
  std::ofstream file(path);
  for (const std::string& name : names) file << "\"" << name << "\",\n";
  return file.good() ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Finds what compile() makes of each operator that the CPU can run.");
  app.add_option("table", options.table, "the file");
  app.add_option("--only", options.only, "operators whose names have this in them");
  app.add_option("--fate", options.fate, "operators that have this fate in the file");
  app.add_option("--part", options.part, "of --parts, counted from 1");
  app.add_option("--parts", options.parts, "every so many operators");
  app.add_option("--page", options.page, "the page that has the counts of the file; with it alone nothing is run");
  app.add_option("--write-sampled", options.write_sampled, "let all operators be sampled, and write which may be");
  app.add_flag("--write", options.write, "write the rows into the file instead of comparing them with it");
  app.add_flag("--detail", options.detail, "print what differs, in full");
  app.add_flag("--show", options.show, "print each line, and why");
  CLI11_PARSE(app, argc, argv);
  if (!options.page.empty()) return check_page(options);
  at::set_num_threads(1);
  warm_up();
  const std::vector<Row> found = rows(options);
  std::map<std::string, int> counts;
  for (const Row& row : found) ++counts[row.fate];
  for (const auto& [fate, count] : counts) std::cout << fate << ": " << count << "\n";
  if (!options.write_sampled.empty()) return write_sampled(options.write_sampled, found);
  if (options.table.empty()) return 0;
  if (!options.write) return check(options, found);
  return write_table(options.table, found);
}

}  // namespace
}  // namespace rehearse_test::differential

int main(int argc, char** argv) { return rehearse_test::differential::run(argc, argv); }
