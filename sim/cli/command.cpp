// SPDX-License-Identifier: BSD-3-Clause
#include "command.h"

#include <exception>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <rehearse/sim/run_log.h>
#include <rehearse/sim/scenario.h>

#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "signals.h"

namespace rehearse::cli {
namespace {

int dispatch(const Arguments& arguments) {
  Console console({.color = !arguments.no_color, .quiet = arguments.quiet, .machine = arguments.json});
  switch (arguments.command) {
    case Command::run:
      return run(arguments, console);
    case Command::sweep:
      return sweep(arguments, console);
    case Command::replay:
      return replay(arguments, console);
    case Command::explain:
      return explain(arguments, console);
    case Command::list:
      return list(arguments, console);
    case Command::completion:
      return completion(arguments, console);
  }
  return kExitInternal;
}

}  // namespace

int command(int argc, const char* const* argv) {
  expect_lost_readers();
  try {
    return dispatch(parse_arguments(argc, argv));
  } catch (const HelpAsked& help) {
    return Console({}).conclude(help.text, 0);
  } catch (const UsageError& error) {
    Console::error(fmt::format("{}\n", error.what()));
    return kExitUsage;
  } catch (const OutputError& error) {
    Console::error(fmt::format("{}\n", error.what()));
    return kExitOutput;
  } catch (const sim::ScenarioError& error) {
    Console::error(fmt::format("{}\n", error.what()));
    return kExitUsage;
  } catch (const sim::RunLogError& error) {
    Console::error(fmt::format("{}\n", error.what()));
    return kExitUsage;
  } catch (const std::system_error& error) {
    Console::error(fmt::format("{}\n", error.what()));
    return kExitSystem;
  } catch (const std::bad_alloc&) {
    Console::error("no more memory\n");
    return kExitSystem;
  } catch (const std::exception& error) {
    Console::error(fmt::format("{}: internal error: {}\n", argc > 0 ? argv[0] : "rehearse", error.what()));
    return kExitInternal;
  }
}

}  // namespace rehearse::cli
