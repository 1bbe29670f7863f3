// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <rehearse/job/program.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/sim/input_file.h>

#include "cli/commands.h"
#include "cli/death/signals.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"
#include "cli/launch/launcher.h"
#include "cli/terminal/exit_codes.h"
#include "cli/validate/comparison.h"
#include "cli/validate/validation_texts.h"
#include "report/writers/culprits.h"
#include "run/run_page.h"

namespace rehearse::cli {
namespace {

using std::filesystem::path;

constexpr std::size_t kFileBytesMost = std::size_t{1} << 30;
constexpr const char* kValidation = "validation.json";
constexpr const char* kPage = "validation.html";

// A run left nothing to compare; its process has said why.
struct NothingToCompare {
  int code = 0;
};

template <class Parse>
auto read_of(const path& file, std::string_view what, const Parse& parse) {
  const auto text = sim::read_input(file, what, [](std::string_view) { return kFileBytesMost; });
  try {
    return parse(text);
  } catch (const sim::ReportFormatError& error) {
    throw UsageError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

std::string printed_in(const path& folder) {
  std::ifstream in(folder / "output.txt", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class Validation {
 public:
  Validation(const Arguments& arguments, const sim::Scenario& scenario, Console& console)
      : arguments_(arguments), scenario_(scenario), console_(console) {}

  int run() {
    const InterruptibleScope interruptible(kRanksInterrupted);
    const auto simulated = run_in(Mode::simulation, "simulation");
    const auto transport = scenario_.world.transport;
    const auto real =
        run_in(Mode::real, transport == Transport::automatic ? std::string("real run")
                                                             : transport_names()[static_cast<std::size_t>(transport)]);
    const auto comparison = compare(simulated, real, arguments_.tolerance);
    const auto json = validation_json(simulated, real, comparison);
    sim::write_file(scenario_.output.directory / kValidation, [&](std::ostream& out) { out << json; });
    if (scenario_.output.wants("html")) leave_page(simulated, real, comparison);
    const auto text = arguments_.json ? json : validation_text(simulated, real, comparison) + files_line();
    return console_.conclude(text, comparison.agrees() ? 0 : kExitDisagree);
  }

 private:
  // Runs in a process of its own, with its own scenario file, so that a crash of one run does not end the other.
  ModeRun run_in(Mode mode, const std::string& name) const {
    const auto folder = scenario_.output.directory / (mode == Mode::real ? "real" : "simulation");
    OutputFolder(folder).keep();
    auto scenario = scenario_;
    scenario.world.mode = mode;
    if (mode == Mode::simulation) scenario.world.transport = Transport::automatic;
    scenario.output.directory = folder;
    scenario.output.files["json"] = true;
    scenario.output.want_what_modes_share();
    const auto file = folder / "scenario.toml";
    sim::write_file(file, [&](std::ostream& out) { out << sim::to_toml(scenario); });
    console_.note(fmt::format("{}: {}", mode == Mode::real ? "for real" : "in simulation", cli::banner(scenario)));
    std::vector<std::string> words = {arguments_.self, "run", file.string(), "--quiet"};
    if (arguments_.time_limit) words.push_back(fmt::format("--time-limit={}", arguments_.time_limit->count()));
    const auto end = run_alone({words, {}, folder / "output.txt"});
    if (exec::interrupt_requested()) {
      Console::error("interrupted before both runs were over: there is nothing to compare\n");
      throw NothingToCompare{rehearse::exit_code(Verdict::interrupted)};
    }
    require_report(end, folder, name);
    return read(folder, name);
  }

  static void require_report(const ProcessEnd& end, const path& folder, const std::string& name) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / "report.json", ignored)) return;
    Console::error(fmt::format("the run by {} left no report; it said:\n{}", name, printed_in(folder)));
    throw NothingToCompare{end.code != 0 ? end.code : kExitSystem};
  }

  static ModeRun read(const path& folder, const std::string& name) {
    ModeRun run;
    run.name = name;
    run.report = read_of(folder / "report.json", "report", sim::report_from_json);
    run.culprits = sim::culprits_of(run.report);
    std::error_code ignored;
    // A run whose process died has neither of the next two files.
    if (const auto file = folder / "calls.json"; std::filesystem::exists(file, ignored))
      run.calls = read_of(file, "list of calls", sim::calls_from_json);
    if (const auto file = folder / "results.json"; std::filesystem::exists(file, ignored))
      run.results = read_of(file, "list of results", sim::results_from_json);
    return run;
  }

  void leave_page(const ModeRun& simulated, const ModeRun& real, const Comparison& comparison) const {
    const auto& folder = scenario_.output.directory;
    const auto run_of = [&](const ModeRun& run, const char* name) {
      auto json = sim::stored_page_run(run.report, folder / name);
      json["name"] = run.name;
      return json;
    };
    const auto runs = sim::Json::array({run_of(simulated, "simulation"), run_of(real, "real")});
    sim::write_file(folder / kPage,
                    [&](std::ostream& out) { write_validation_page(out, simulated, real, comparison, runs); });
  }

  std::string files_line() const {
    const auto& folder = scenario_.output.directory;
    std::vector<path> files = {folder / kValidation, folder / "simulation", folder / "real"};
    if (scenario_.output.wants("html")) files.insert(files.begin() + 1, folder / kPage);
    std::string line;
    for (const auto& file : files) line += (line.empty() ? "files: " : ", ") + file.string();
    return line + "\n";
  }

  const Arguments& arguments_;
  const sim::Scenario& scenario_;
  Console& console_;
};

}  // namespace

int validate(const Arguments& arguments, Console& console) {
  if (const auto process = launched_process()) {
    throw UsageError(
        fmt::format("validate starts the processes of its real run itself, and {} says that it is one of {}: "
                    "run it alone",
                    process->rank_variable, process->size));
  }
  // Make paths absolute, because the runs' own scenario files lie elsewhere.
  auto absolute = arguments;
  std::error_code ignored;
  if (find_program(arguments.operand) == nullptr && std::filesystem::exists(arguments.operand, ignored))
    absolute.operand = std::filesystem::absolute(arguments.operand).string();
  const auto scenario = scenario_of(absolute);
  if (scenario.world.swarm.on) {
    throw UsageError(fmt::format("{}: [swarm] is on, which works in simulations only, and validate runs for real, too",
                                 arguments.operand));
  }
  if (!scenario.world.faults.empty()) {
    throw UsageError(fmt::format("{}: fault \"{}\" works in simulations only, and validate runs for real, too",
                                 arguments.operand, to_string(scenario.world.faults.front())));
  }
  try {
    const FolderLock lock(scenario.output.directory);
    // Keep what a `run` of the same scenario left here: remove only the two files of a validation. The other files of a
    // validation lie in subfolders.
    prepare_folder(scenario.output.directory);
    for (const auto* const file : {kValidation, kPage})
      std::filesystem::remove(scenario.output.directory / file, ignored);
    return Validation(arguments, scenario, console).run();
  } catch (const NothingToCompare& nothing) {
    return nothing.code;
  }
}

}  // namespace rehearse::cli
