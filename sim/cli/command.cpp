// SPDX-License-Identifier: BSD-3-Clause
#include "cli/command.h"

#include <exception>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <rehearse/job/program_module.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/sim/input_file.h>
#include <rehearse_internal/sim/run_log.h>
#include <rehearse_internal/sim/scenario.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

#include "cli/commands.h"
#include "cli/death/signals.h"
#include "cli/grammar/arguments.h"
#include "cli/grammar/usage_error.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"

namespace rehearse::cli {
namespace {

int dispatch(const Arguments& arguments) {
  Console console({.color = !arguments.no_color, .quiet = arguments.quiet, .machine = arguments.json});
  return arguments.command->function(arguments, console);
}

}  // namespace

int exit_code_of_exception(const std::string& self) {
  const auto said = [](const char* text, int code) {
    Console::error(fmt::format("{}\n", text));
    return code;
  };
  try {
    throw;
  } catch (const UsageError& error) {
    return said(error.what(), kExitUsage);
  } catch (const OutputError& error) {
    return said(error.what(), kExitOutput);
  } catch (const sim::ScenarioError& error) {
    return said(error.what(), kExitUsage);
  } catch (const FaultError& error) {
    return said(error.what(), kExitUsage);
  } catch (const sim::InputError& error) {
    return said(error.what(), kExitUsage);
  } catch (const sim::RunLogError& error) {
    return said(error.what(), kExitUsage);
  } catch (const ModuleError& error) {
    return said(error.what(), kExitUsage);
  } catch (const RunnerUnavailable& error) {
    return said(error.what(), kExitUnavailable);
  } catch (const torch_state::TorchStateError& error) {
    return said(error.what(), kExitUnavailable);
  } catch (const std::system_error& error) {
    return said(error.what(), kExitSystem);
  } catch (const std::bad_alloc&) {
    return said("no more memory", kExitSystem);
  } catch (const std::exception& error) {
    return said(fmt::format("{}: internal error: {}", self, error.what()).c_str(), kExitInternal);
  }
}

int command(int argc, const char* const* argv) {
  expect_lost_readers();
  try {
    if (argc > 1 && std::string_view(argv[1]) == kCompleteWord)
      return Console({}).conclude(offers({argv + 2, argv + argc}), 0);
    return dispatch(parse_arguments(argc, argv));
  } catch (const HelpAsked& help) {
    return Console({}).conclude(help.text, 0);
  } catch (...) {
    return exit_code_of_exception(argc > 0 ? argv[0] : "rehearse");
  }
}

}  // namespace rehearse::cli
