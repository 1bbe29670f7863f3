// SPDX-License-Identifier: BSD-3-Clause
// Runs random programs in eager mode and compiled. The programs run in worker processes, so that a crash is a finding,
// too.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "differential/program/generate.h"
#include "differential/program/text.h"
#include "differential/run/finding.h"

namespace rehearse_test::differential {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 0;
  std::uint64_t programs = 0;
  std::uint64_t seed = 1;
  int statements = 14;
  int jobs = 1;
  bool show = false, keep_going = false, errors_are_remarks = false, refusals = false, brief = false;
  std::vector<std::string> settings, only, without;
};

constexpr std::size_t kSettingsMax = 32, kKindsMax = 64;

// The findings and remarks of one kind.
struct Kind {
  char name[100];
  std::uint64_t count, programs, first, last;  // the first and last seeds
};

// Progress that workers report in memory shared by all processes.
struct Progress {
  std::uint64_t seed;
  std::size_t setting;
  bool generates;
  std::uint64_t programs, wide, cases, findings, remarks, statements;
  std::uint64_t refused[kSettingsMax], hits[kSettingsMax], checked[kSettingsMax];
  Kind kinds[kKindsMax];

  void add(const Kind& added) {
    for (Kind& kind : kinds) {
      if (kind.count != 0 && std::string(kind.name) != added.name) continue;
      const bool is_first = kind.count == 0;
      std::snprintf(kind.name, sizeof kind.name, "%s", added.name);
      kind.programs += is_first || kind.last != added.last ? added.programs : 0;
      kind.count += added.count;
      kind.first = is_first ? added.first : std::min(kind.first, added.first);
      kind.last = added.last;
      return;
    }
  }
};

std::vector<std::string> chosen_families(const Options& options) {
  std::vector<std::string> chosen;
  for (const std::string& family : options.only.empty() ? families() : options.only) {
    if (std::find(options.without.begin(), options.without.end(), family) == options.without.end()) {
      chosen.push_back(family);
    }
  }
  return chosen;
}

std::vector<const Setting*> chosen_settings(const Options& options) {
  std::vector<const Setting*> chosen;
  for (const Setting& setting : settings()) {
    const bool named =
        std::find(options.settings.begin(), options.settings.end(), setting.name) != options.settings.end();
    if (options.settings.empty() || named) chosen.push_back(&setting);
  }
  return chosen;
}

class Job {
 public:
  Job(const Options& options, int number, Progress& progress)
      : options_(options), settings_(chosen_settings(options)), number_(number), progress_(progress) {
    recipe_ = {chosen_families(options), options.statements};
  }

  // A worker tests programs until the time is over or all programs are done. Without --keep-going, it also stops at the
  // first finding. If the worker dies, another worker goes on with the next program. The death is a finding, unless
  // LibTorch crashed while the program was made.
  void run() {
    std::uint64_t next = options_.seed + static_cast<std::uint64_t>(number_);
    while (goes_on(next)) {
      std::fflush(stdout);
      const pid_t worker = ::fork();
      if (worker == 0) {
        work(next);
        std::fflush(stdout);
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(worker, &status, 0);
      if (WIFEXITED(status)) break;
      if (progress_.generates) {
        std::printf("seed %llu: LibTorch itself crashes while the program is made\n",
                    static_cast<unsigned long long>(progress_.seed));
      } else {
        report(progress_.seed, *settings_[progress_.setting], {"crashes", "", -1});
      }
      next = progress_.seed + static_cast<std::uint64_t>(options_.jobs);
    }
  }

 private:
  bool goes_on(std::uint64_t seed) const {
    if (progress_.findings > 0 && !options_.keep_going) return false;
    if (options_.programs > 0 && seed >= options_.seed + options_.programs) return false;
    return options_.seconds <= 0 || std::chrono::duration<double>(Clock::now() - begin_).count() < options_.seconds;
  }

  void work(std::uint64_t seed) {
    silence_warnings();
    for (; goes_on(seed); seed += static_cast<std::uint64_t>(options_.jobs)) {
      progress_.seed = seed;
      progress_.generates = true;
      const Program program = generate(seed, recipe_);
      progress_.generates = false;
      if (options_.show)
        std::printf("seed %llu\n%s\n", static_cast<unsigned long long>(seed), text_of(program).c_str());
      const int statements = statements_in(program.statements);
      ++progress_.programs;
      progress_.statements += static_cast<std::uint64_t>(statements);
      progress_.wide += statements >= 12 && families_in(program.statements) >= 4;
      kinds_.clear();
      for (std::size_t i = 0; i < settings_.size(); ++i) test(program, i);
    }
  }

  void test(const Program& program, std::size_t which) {
    const Setting& setting = *settings_[which];
    progress_.seed = program.seed;
    progress_.setting = which;
    ++progress_.cases;
    ++progress_.checked[which];
    ::alarm(60);
    const Outcome outcome = check(prepared(program, setting), setting, all_calls(program.seed));
    ::alarm(0);
    progress_.refused[which] += !outcome.refusal.empty();
    progress_.hits[which] += outcome.hits > 0;
    if (options_.show && !outcome.refusal.empty()) {
      std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(program.seed), setting.name,
                  outcome.refusal.substr(0, outcome.refusal.find('\n')).c_str());
    }
    if (outcome.difference)
      report(program.seed, setting, {outcome.difference->kind, outcome.difference->text, outcome.call});
  }

  // With --errors-are-remarks, an error of the compiled program alone is only a remark: users notice errors, but not
  // wrong results.
  bool is_remark(const Verdict& verdict) const {
    return options_.errors_are_remarks && verdict.kind.starts_with("throws in ");
  }

  // Shrinks a worker's first difference of each kind, and prints the result. Prints a single line for the worker's
  // further differences of this kind, and for a difference that shrinks to the same operations as an earlier one. The
  // job reports the deaths of its workers, and shrinks only the first death.
  void report(std::uint64_t seed, const Setting& setting, const Verdict& verdict) {
    if (verdict.kind.starts_with(kRefused) && !options_.refusals) return;
    Kind kind{{}, 1, 1, seed, seed};
    std::snprintf(kind.name, sizeof kind.name, "%s", verdict.kind.c_str());
    progress_.add(kind);
    if (is_remark(verdict)) {
      ++progress_.remarks;
      return say(seed, setting, verdict, "a remark");
    }
    ++progress_.findings;
    if (options_.brief) return say(seed, setting, verdict, "not shrunk");
    if (!kinds_.insert(verdict.kind).second) return say(seed, setting, verdict, "as before");
    silence_warnings();
    const Program program = prepared(generate(seed, recipe_), setting);
    const Finding finding = shrunk({program, all_calls(seed)}, setting, verdict);
    if (!seen_.insert(finding.signature).second) return say(seed, setting, verdict, "known: " + finding.signature);
    std::printf("%s\n", finding.text.c_str());
    std::fflush(stdout);
  }

  static void say(std::uint64_t seed, const Setting& setting, const Verdict& verdict, const std::string& more) {
    std::printf("seed %llu, setting %s: %s (%s)\n", static_cast<unsigned long long>(seed), setting.name,
                verdict.kind.c_str(), more.c_str());
    std::fflush(stdout);
  }

  const Options& options_;
  std::vector<const Setting*> settings_;
  Recipe recipe_;
  int number_;
  Progress& progress_;
  std::set<std::string> seen_, kinds_;
  Clock::time_point begin_ = Clock::now();
};

Progress sum_of(const Progress* jobs, int count) {
  Progress sum{};
  for (int i = 0; i < count; ++i) {
    sum.programs += jobs[i].programs;
    sum.wide += jobs[i].wide;
    sum.cases += jobs[i].cases;
    sum.findings += jobs[i].findings;
    sum.remarks += jobs[i].remarks;
    sum.statements += jobs[i].statements;
    for (const Kind& kind : jobs[i].kinds) {
      if (kind.count > 0) sum.add(kind);
    }
    for (std::size_t s = 0; s < kSettingsMax; ++s) {
      sum.refused[s] += jobs[i].refused[s];
      sum.hits[s] += jobs[i].hits[s];
      sum.checked[s] += jobs[i].checked[s];
    }
  }
  return sum;
}

// Runs options.jobs jobs side by side. Each job is a process that has one worker at a time.
int fuzz(const Options& options) {
  at::set_num_threads(1);
  const std::size_t bytes = sizeof(Progress) * static_cast<std::size_t>(options.jobs);
  void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no shared memory");
  auto* const progress = static_cast<Progress*>(shared);
  const auto begin = Clock::now();
  std::vector<pid_t> jobs;
  for (int job = 0; job < options.jobs; ++job) {
    const pid_t process = ::fork();
    if (process == 0) {
      Job(options, job, progress[job]).run();
      std::fflush(stdout);
      ::_exit(0);
    }
    jobs.push_back(process);
  }
  bool died = false;
  for (const pid_t job : jobs) {
    int status = 0;
    ::waitpid(job, &status, 0);
    died = died || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  const Progress sum = sum_of(progress, options.jobs);
  std::printf(
      "%llu programs (%llu of at least 12 statements of 4 families, %.1f statements each), %llu cases, %llu "
      "findings, %llu errors that are remarks, %.1f s\n",
      static_cast<unsigned long long>(sum.programs), static_cast<unsigned long long>(sum.wide),
      sum.programs ? static_cast<double>(sum.statements) / static_cast<double>(sum.programs) : 0,
      static_cast<unsigned long long>(sum.cases), static_cast<unsigned long long>(sum.findings),
      static_cast<unsigned long long>(sum.remarks), std::chrono::duration<double>(Clock::now() - begin).count());
  const auto settings = chosen_settings(options);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    std::printf("  %-16s %llu programs, %llu served by a cache, %llu refused\n", settings[i]->name,
                static_cast<unsigned long long>(sum.checked[i]), static_cast<unsigned long long>(sum.hits[i]),
                static_cast<unsigned long long>(sum.refused[i]));
  }
  for (const Kind& kind : sum.kinds) {
    if (kind.count == 0) continue;
    std::printf("  %llu times in %llu programs, first seed %llu: %s\n", static_cast<unsigned long long>(kind.count),
                static_cast<unsigned long long>(kind.programs), static_cast<unsigned long long>(kind.first), kind.name);
  }
  return sum.findings > 0 || died ? 1 : 0;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Runs random programs eagerly and compiled, and prints those that differ, as small as they get.");
  app.add_option("--seconds", options.seconds, "stop after so long");
  app.add_option("--programs", options.programs, "stop after so many programs");
  app.add_option("--seed", options.seed, "of the first program");
  app.add_option("--statements", options.statements, "of each program, at least");
  app.add_option("--jobs", options.jobs, "processes");
  app.add_option("--setting", options.settings, "only these settings")->delimiter(',');
  app.add_option("--only", options.only, "only these families of statements")->delimiter(',');
  app.add_option("--without", options.without, "all families but these")->delimiter(',');
  app.add_flag("--show", options.show, "print each program, and why it is refused");
  app.add_flag("--keep-going", options.keep_going, "go on after a finding");
  app.add_flag("--brief", options.brief, "print a line for each finding, and do not shrink it");
  app.add_flag("--refusals", options.refusals, "a refusal that docs/COMPILE.md does not list is a finding");
  app.add_flag("--errors-are-remarks", options.errors_are_remarks,
               "an error of compiled code where eager mode works is told, and is no finding");
  CLI11_PARSE(app, argc, argv);
  if (options.seconds <= 0 && options.programs == 0) options.seconds = 10;
  std::setvbuf(stdout, nullptr, _IOFBF, 1 << 20);  // so that reports of several processes do not mix
  return fuzz(options);
}

}  // namespace
}  // namespace rehearse_test::differential

int main(int argc, char** argv) { return rehearse_test::differential::run(argc, argv); }
