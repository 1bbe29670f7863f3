// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/finding.h"

#include <cstring>
#include <exception>
#include <set>
#include <sstream>

#include <c10/util/Exception.h>
#include <signal.h>

#include "differential/program/operation.h"
#include "differential/program/text.h"
#include "differential/run/child.h"

namespace rehearse_test::differential {
namespace {

class Silent final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

std::string calls_text(const std::vector<CallSpec>& calls) {
  std::ostringstream out;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CallSpec& call = calls[i];
    out << (i ? "; " : "") << i << ": N = " << call.sizes[0] << ", O = " << call.sizes[1] << ", count = " << call.count
        << (call.grad ? "" : ", no_grad") << (call.training ? "" : ", eval")
        << (call.other_forms ? ", other forms" : "");
  }
  return out.str();
}

Verdict parsed(const std::string& text) {
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  if (second == std::string::npos) return {"no answer from the test's process", text, -1};
  return {text.substr(first + 1, second - first - 1), text.substr(second + 1), std::stoi(text)};
}

void collect_names(const std::vector<Statement>& statements, std::set<std::string>& names) {
  for (const Statement& statement : statements) {
    names.insert(statement.operation->name);
    for (const Block& block : statement.blocks) collect_names(block.statements, names);
  }
}

}  // namespace

Verdict verdict_of(const Case& tested, const Setting& setting) {
  try {
    const Outcome outcome = check(tested.program, setting, tested.calls);
    if (!outcome.difference) return {};
    return {outcome.difference->kind, outcome.difference->text, outcome.call};
  } catch (const std::exception& error) {
    return {"the tester throws", error.what(), -1};
  }
}

Verdict verdict_in_child(const Case& tested, const Setting& setting, int seconds_max) {
  const ChildAnswer answer = ask_child(
      [&] {
        const Verdict verdict = verdict_of(tested, setting);
        return std::to_string(verdict.call) + "\n" + verdict.kind + "\n" + verdict.text;
      },
      seconds_max);
  if (answer.signal == SIGALRM) return {"hangs", "no end after " + std::to_string(seconds_max) + " s", -1};
  if (answer.signal != 0) return {"crashes", ::strsignal(answer.signal), -1};
  return parsed(answer.text);
}

Finding shrunk(const Case& failing, const Setting& setting, const Verdict& verdict) {
  const Case small =
      shrink(failing, [&](const Case& candidate) { return verdict_in_child(candidate, setting).kind == verdict.kind; });
  const Verdict last = verdict_in_child(small, setting);
  std::set<std::string> names;
  collect_names(small.program.statements, names);
  std::string signature = verdict.kind;
  for (const std::string& name : names) signature += ", " + name;
  std::ostringstream out;
  out << "seed " << failing.program.seed << ", setting " << setting.name << ": " << verdict.kind << "\n"
      << "calls " << calls_text(small.calls) << "\n"
      << text_of(small.program) << "in call " << last.call << ": " << last.text << "\n";
  return {out.str(), signature};
}

void silence_warnings() {
  static Silent silent;
  c10::WarningUtils::set_warning_handler(&silent);
}

}  // namespace rehearse_test::differential
