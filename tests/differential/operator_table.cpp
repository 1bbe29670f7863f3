// SPDX-License-Identifier: BSD-3-Clause
// The table of operators: what compile() makes of each that the CPU can run.
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "differential/operators/trial.h"
#include "differential/run/child.h"
#include "differential/run/finding.h"

namespace rehearse_test::differential {
namespace {

constexpr int kSecondsMax = 60;
constexpr std::size_t kCrashesMost = 40;

struct Options {
  std::string table, only, fate;
  bool write = false, show = false, detail = false;
  int part = 1, parts = 1;
};

// One line of the table: name, fate, samples, and for people why.
struct Row {
  std::string name, fate, samples, why, detail;

  std::string key() const { return name + "\t" + fate + "\t" + samples; }
};

// Memory that this process and its children share.
Place& shared_place() {
  static Place* const place = [] {
    void* const memory = ::mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    return static_cast<Place*>(memory);
  }();
  return *place;
}

// Arguments on which LibTorch itself crashes are left out.
Row row_of(const c10::OperatorHandle& op) {
  Place& place = shared_place();
  Row row{c10::toString(op.operator_name()), "", "0", "", ""};
  for (std::set<int> skipped; skipped.size() < kCrashesMost; skipped.insert(place.choice)) {
    place = {};
    const ChildAnswer answer = ask_child(
        [&] {
          silence_warnings();
          const Trial trial = try_operator(op, skipped, place);
          return std::string(to_string(trial.fate)) + "\t" + std::to_string(trial.samples) + "\t" + trial.why + "\n" +
                 trial.detail;
        },
        kSecondsMax);
    row.fate = answer.signal == SIGALRM ? "hangs" : "crashes";
    if (answer.signal != 0 && place.compiles) return row;
    if (answer.signal != 0) continue;
    std::istringstream text(answer.text);
    std::getline(text, row.fate, '\t');
    std::getline(text, row.samples, '\t');
    std::getline(text, row.why);
    std::getline(text, row.detail, '\0');
    return row;
  }
  row.fate = to_string(Fate::NoSamples);
  return row;
}

std::map<std::string, std::string> lines_of(const std::string& path) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines[line.substr(0, line.find('\t'))] = line;
  }
  return lines;
}

std::vector<Row> rows(const Options& options) {
  std::vector<Row> all;
  const auto known = options.fate.empty() ? std::map<std::string, std::string>() : lines_of(options.table);
  int number = 0;
  for (const c10::OperatorHandle& op : operators_of_the_cpu()) {
    const std::string name = c10::toString(op.operator_name());
    if (name.find(options.only) == std::string::npos || number++ % options.parts != options.part - 1) continue;
    const auto line = known.find(name);
    const bool has_fate = line != known.end() && line->second.find("\t" + options.fate + "\t") != std::string::npos;
    if (!options.fate.empty() && !has_fate) continue;
    all.push_back(row_of(op));
    if (options.detail && !all.back().detail.empty()) std::cout << all.back().detail << "\n";
    if (options.show) std::cout << all.back().key() << "\t" << all.back().why << std::endl;
  }
  return all;
}

bool is_right(const Row& row) {
  return row.fate != "wrong" && row.fate != "throws" && row.fate != "crashes" && row.fate != "hangs";
}

// Rows must be those of the file, and no operator may give another answer than eager.
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

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Finds what compile() makes of each operator that the CPU can run.");
  app.add_option("table", options.table, "the file");
  app.add_option("--only", options.only, "operators whose names have this in them");
  app.add_option("--fate", options.fate, "operators that have this fate in the file");
  app.add_option("--part", options.part, "of --parts, counted from 1");
  app.add_option("--parts", options.parts, "every so many operators");
  app.add_flag("--write", options.write, "write the file instead of comparing with it");
  app.add_flag("--detail", options.detail, "print what differs, in full");
  app.add_flag("--show", options.show, "print each line, and why");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  const std::vector<Row> found = rows(options);
  std::map<std::string, int> counts;
  for (const Row& row : found) ++counts[row.fate];
  for (const auto& [fate, count] : counts) std::cout << fate << ": " << count << "\n";
  if (options.table.empty()) return 0;
  if (!options.write) return check(options, found);
  auto lines = options.fate.empty() ? std::map<std::string, std::string>() : lines_of(options.table);
  for (const Row& row : found) lines[row.name] = row.key();
  std::ofstream file(options.table);
  file << "# What compile() makes of each operator: name, fate, samples. Written by operator_table --write.\n";
  for (const auto& [name, line] : lines) file << line << "\n";
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace rehearse_test::differential

int main(int argc, char** argv) { return rehearse_test::differential::run(argc, argv); }
