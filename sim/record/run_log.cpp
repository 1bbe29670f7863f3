// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/run_log.h>

#include <algorithm>
#include <charconv>
#include <ostream>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/exec/build_id.h>
#include <rehearse_internal/hash/fnv1a.h>
#include <rehearse_internal/sim/input_file.h>

#include "output_file.h"

namespace rehearse::sim {
namespace {

constexpr std::string_view kTitle = "rehearse run log ";
constexpr int kFormatVersion = 2;  // increase it when the format of reports changes: logs contain reports
constexpr std::string_view kChecksum = "checksum: 0x";
constexpr std::size_t kChecksumLine = kChecksum.size() + 16 + 1;

std::string checksum_line(std::string_view bytes) { return fmt::format("{}{:016x}\n", kChecksum, fnv1a(bytes)); }

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      result.append(c == '\\' ? 2 : 1, c);
    }
  }
  return result;
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\\' && i + 1 < text.size();
    if (pair) ++i;
    result += pair && text[i] == 'n' ? '\n' : text[i];
  }
  return result;
}

std::optional<std::uint64_t> number_of(std::string_view text, int base = 10) {
  if (base == 16) {
    if (!text.starts_with("0x")) return std::nullopt;
    text.remove_prefix(2);
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Reads a log from front to back. If a part does not fit, it throws Problem with the name of the part. Only the caller
// knows whether the file was cut off there or is damaged.
class Parser {
 public:
  struct Problem {
    std::string part;
  };

  explicit Parser(std::string_view bytes) : rest_(bytes) {}

  RunLog parse() {
    line("version");
    const std::string state = value("state");
    if (state != "running" && state != "finished") throw Problem{"state"};
    const bool finished = state == "finished";
    if (finished) {
      value("verdict");
      value("identity");
    }
    RunLog log;
    log.program = unescaped(value("program"));
    log.seed = number("seed", value("seed"), 16);
    log.build = unescaped(value("build"));
    log.scenario_path = unescaped(value("scenario"));
    while (rest_.starts_with("option: ")) log.options.push_back(unescaped(value("option")));
    log.scenario_text = block("scenario text", number("scenario text", value("scenario text")));
    if (finished) log.finished = parse_finished();
    if (rest_.size() != kChecksumLine) throw Problem{"checksum"};
    return log;
  }

 private:
  RunLog::Finished parse_finished() {
    const std::string sizes = value("decisions");
    const std::size_t space = std::min(sizes.find(' '), sizes.size());
    const auto count = number("decisions", std::string_view(sizes).substr(0, space));
    const auto size = number("decisions", std::string_view(sizes).substr(std::min(space + 1, sizes.size())));
    const auto decisions = DecisionList::from_bytes(block("decisions", size), count);
    if (!decisions) throw Problem{"decisions"};
    const std::string json = block("report", number("report", value("report")));
    try {
      return {report_from_json(json), {decisions->begin(), decisions->end()}};
    } catch (const ReportFormatError&) {
      throw Problem{"report"};
    }
  }

  std::string_view line(const std::string& part) {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) throw Problem{part};
    const auto text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string value(const std::string& key) {
    const auto text = line(key);
    if (!text.starts_with(key + ": ")) throw Problem{key};
    return std::string(text.substr(key.size() + 2));
  }

  static std::uint64_t number(const std::string& part, std::string_view text, int base = 10) {
    const auto result = number_of(text, base);
    if (!result) throw Problem{part};
    return *result;
  }

  std::string block(const std::string& part, std::uint64_t size) {
    if (size >= rest_.size() || rest_[size] != '\n') throw Problem{part};
    std::string bytes(rest_.substr(0, size));
    rest_.remove_prefix(size + 1);
    return bytes;
  }

  std::string_view rest_;
};

void require_title(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kTitle)) throw RunLogError(name + ": is not a run log of rehearse");
  const auto end = std::min(bytes.find('\n'), bytes.size());
  const auto version = bytes.substr(kTitle.size(), end - kTitle.size());
  if (version != std::to_string(kFormatVersion)) {
    throw RunLogError(
        fmt::format("{}: is a run log of format {}; this rehearse reads format {}", name, version, kFormatVersion));
  }
}

}  // namespace

std::string run_log_bytes(const RunLog& log) {
  std::string text = fmt::format("{}{}\nstate: {}\n", kTitle, kFormatVersion, log.finished ? "finished" : "running");
  if (log.finished) {
    const Report& report = log.finished->report;
    text += fmt::format("verdict: {}\nidentity: {:#x}\n", to_string(report.verdict), report.identity);
  }
  text += fmt::format("program: {}\nseed: {:#x}\nbuild: {}\nscenario: {}\n", escaped(log.program), log.seed,
                      escaped(log.build), escaped(log.scenario_path));
  for (const auto& option : log.options) text += fmt::format("option: {}\n", escaped(option));
  text += fmt::format("scenario text: {}\n{}\n", log.scenario_text.size(), log.scenario_text);
  if (log.finished) {
    const DecisionList decisions(log.finished->decisions);
    text += fmt::format("decisions: {} {}\n", decisions.size(), decisions.bytes().size());
    text += decisions.bytes();
    const std::string json = to_json(log.finished->report);
    text += fmt::format("\nreport: {}\n{}\n", json.size(), json);
  }
  return text + checksum_line(text);
}

std::size_t run_log_bytes_most(std::string_view beginning) noexcept {
  return beginning.starts_with(kTitle.substr(0, beginning.size())) ? std::size_t{4} << 30 : 0;
}

RunLog parse_run_log(std::string_view bytes, const std::string& name) {
  require_title(bytes, name);
  const std::size_t covered = bytes.size() > kChecksumLine ? bytes.size() - kChecksumLine : 0;
  const bool complete = bytes.substr(covered).starts_with(kChecksum) && bytes.ends_with('\n');
  const std::string expected = checksum_line(bytes.substr(0, covered));
  if (complete && bytes.substr(covered) != expected) {
    throw RunLogError(name + ": is damaged: its checksum does not fit its content");
  }
  std::string part = "checksum";
  try {
    RunLog log = Parser(bytes).parse();
    if (complete) return log;
  } catch (const Parser::Problem& problem) {
    part = problem.part;
  }
  if (complete) throw RunLogError(fmt::format("{}: is damaged in its {}", name, part));
  throw RunLogError(fmt::format("{}: is cut off after {} bytes, in its {}", name, bytes.size(), part));
}

void write_run_log(const std::filesystem::path& file, const RunLog& log) {
  const std::string bytes = run_log_bytes(log);
  try {
    write_file(file, [&](std::ostream& out) { out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); });
  } catch (const OutputError& error) {
    throw RunLogError(error.what());
  }
}

RunLog read_run_log(const std::filesystem::path& file) {
  try {
    return parse_run_log(read_input(file, "run log", run_log_bytes_most), file.string());
  } catch (const InputError& error) {
    throw RunLogError(error.what());
  }
}

std::string executable_build_id() {
  const std::string id = exec::executable_build_id();
  return id.empty() ? "none" : id;
}

}  // namespace rehearse::sim
