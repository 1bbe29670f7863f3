// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/settings.h"

#include <algorithm>
#include <iterator>

#include <c10/util/Exception.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

#include "differential/run/documented_differences.h"

namespace rehearse_test::differential {
namespace {

using NetPointer = std::shared_ptr<Net>;

// A bucket holds one or two tensors of a layer.
constexpr double kSmallCapMb = 0.00015;

// How the ranks communicate; empty if the setting has no ranks.
struct Ranks {
  rehearse::Group group = {};
  std::optional<rehearse::DeviceMesh> mesh = std::nullopt;
};

NetPointer make_net(const Program& program, const Ranks& ranks) {
  at::manual_seed(program.seed);
  auto net = std::make_shared<Net>(program);
  net->group = ranks.group;
  net->mesh = ranks.mesh;
  return net;
}

// Changes parameters as an optimizer does between two steps.
void shift_parameters(Net& net) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : net.parameters()) parameter.add_(0.03125);
}

bool asks_data(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) {
    const std::string family = statement.operation->family;
    if (family == "read" || family == "unbacked" || family == "equal") return true;
    for (const Block& block : statement.blocks) {
      if (asks_data(block.statements)) return true;
    }
  }
  return false;
}

template <class Eager, class Compiled>
Outcome compare_calls(const Program& program, const std::vector<CallSpec>& calls, Net& eager_net, Net& compiled_net,
                      Eager&& eager, Compiled& compiled, const Setting& setting) {
  const bool relaxed = setting.layouts.has_value();
  Outcome outcome;
  const NetPointer copies_net =
      program.change != Change::None ? make_net(program, {eager_net.group, eager_net.mesh}) : nullptr;
  const auto seen_at = [&](std::size_t call, Net& net, const Forward& forward, Changing changing = Changing::InPlace) {
    const Forward there = [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
      Tensors results;
      run_at(setting.place, [&] { results = forward(arguments, count, steps); });
      return results;
    };
    return observe(program, calls[call], net, there, changing);
  };
  const auto of_copies = [&](std::size_t call) {
    const Forward forward = [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
      return copies_net->forward(arguments, count, steps);
    };
    return seen_at(call, *copies_net, forward, Changing::OfACopy);
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Observed expected = seen_at(i, eager_net, eager);
    if (relaxed) allow_other_bits(expected);
    Observed found = seen_at(i, compiled_net, [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
      return compiled(arguments, count, steps);
    });
    if (relaxed && asks_data(program.statements)) {
      leave_out_strides_of_empty_tensors(expected);
      leave_out_strides_of_empty_tensors(found);
    }
    if (copies_net == nullptr) {
      outcome.difference = compare(expected, found);
    } else {
      outcome.difference = compare_with_copies(expected, of_copies(i), found);
      shift_parameters(*copies_net);
    }
    outcome.call = static_cast<int>(i);
    outcome.eager_error = expected.error;
    outcome.undefined_gradients = undefined_gradients(expected);
    outcome.gives_outside = eager_net.gave_outside;
    if (outcome.difference || !expected.thrown_in.empty()) break;
    shift_parameters(eager_net);
    shift_parameters(compiled_net);
  }
  const auto stats = compiled.stats();
  outcome.hits = stats.hits;
  outcome.compiles = stats.compiles;
  outcome.graphs = stats.graphs;
  outcome.eager_calls = stats.eager_calls;
  outcome.refusal = compiled.explain().refusal;
  return outcome;
}

rehearse::CompileOptions options_of(const Setting& setting, const Program& program) {
  rehearse::CompileOptions options{.backend = setting.backend, .dynamic = setting.dynamic};
  if (setting.layouts) {
    using rehearse::test::OutputLayout;
    constexpr OutputLayout kLayouts[] = {OutputLayout::Reversed, OutputLayout::Padded, OutputLayout::ChannelsLast};
    const OutputLayout layout = kLayouts[program.seed % std::size(kLayouts)];
    options.backend = std::make_shared<rehearse::test::LayoutBackend>(layout, *setting.layouts, setting.backend);
  }
  return options;
}

Outcome check_here(const Program& program, const Setting& setting, const std::vector<CallSpec>& calls,
                   const Ranks& ranks) {
  const NetPointer eager_net = make_net(program, ranks), net = make_net(program, ranks);
  const Forward eager = [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
    return eager_net->forward(arguments, count, steps);
  };
  if (setting.way == Way::Function) {
    auto compiled = rehearse::compile([net](const Tensors& arguments, std::int64_t count,
                                            std::int64_t& steps) { return net->forward(arguments, count, steps); },
                                      options_of(setting, program));
    return compare_calls(program, calls, *eager_net, *net, eager, compiled, setting);
  }
  if (setting.way == Way::FakeDdp) {
    rehearse::fakes::FakeDDP<NetPointer> ddp(net, kSmallCapMb);
    auto compiled = rehearse::compile(ddp, options_of(setting, program));
    return compare_calls(program, calls, *eager_net, *net, eager, compiled, setting);
  }
  if (setting.way == Way::Ddp) {
    const rehearse::DistributedDataParallelOptions options{.bucket_cap_mb = kSmallCapMb,
                                                           .find_unused_parameters = true};
    rehearse::DistributedDataParallel<NetPointer> eager_ddp(eager_net, ranks.group, options),
        ddp(net, ranks.group, options);
    auto compiled = rehearse::compile(ddp, options_of(setting, program));
    return compare_calls(
        program, calls, *eager_net, *net,
        [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
          return eager_ddp(arguments, count, steps);
        },
        compiled, setting);
  }
  auto compiled = rehearse::compile(net, options_of(setting, program));
  return compare_calls(program, calls, *eager_net, *net, eager, compiled, setting);
}

// Inserts a read near the middle. The graph ends at the read. The read is of the first output of the last pointwise,
// module or matmul statement before it, or of the first argument if there is no such statement.
void add_read(Program& program) {
  if (program.statements.empty()) return;
  Statement read;
  read.operation = &operation("if always");
  read.blocks.resize(2);
  std::size_t place = (program.statements.size() + program.seed % 3) / 2;
  read.inputs = {0};
  for (std::size_t i = 0; i < place; ++i) {
    const Statement& before = program.statements[i];
    const std::string family = before.operation->family;
    if ((family == "pointwise" || family == "module" || family == "matmul") && !before.outputs.empty()) {
      read.inputs = {before.outputs[0]};
    }
  }
  program.statements.insert(program.statements.begin() + static_cast<std::ptrdiff_t>(place), read);
}

// Ranks train on data of their own, unless the program's behaviour depends on the data.
std::vector<CallSpec> calls_of_rank(std::vector<CallSpec> calls, const Program& program, int rank) {
  if (!asks_data(program.statements)) {
    for (CallSpec& call : calls) call.data += static_cast<std::uint64_t>(rank) << 40;
  }
  return calls;
}

Outcome check_on_ranks(const Program& program, const Setting& setting, const std::vector<CallSpec>& calls) {
  std::vector<Outcome> outcomes(2);
  rehearse::World world({.ranks = 2, .seed = program.seed, .explain_failures = false, .explain_remarks = false});
  c10::WarningHandler* const warnings = c10::WarningUtils::get_warning_handler();
  const rehearse::Report report = world.run([&](rehearse::RankContext& ctx) {
    c10::WarningUtils::set_warning_handler(warnings);
    outcomes[static_cast<std::size_t>(ctx.rank())] =
        check_here(program, setting, calls_of_rank(calls, program, ctx.rank()),
                   {ctx.group(), rehearse::DeviceMesh(ctx, {1, 2}, {"dp", "tp"})});
  });
  for (const Outcome& outcome : outcomes) {
    if (outcome.difference) return outcome;
  }
  if (report.verdict != rehearse::Verdict::ok) {
    outcomes[0].difference = {"verdict " + std::string(to_string(report.verdict)), report.headline};
  }
  return outcomes[0];
}

Outcome check_as_it_is(const Program& program, const Setting& setting, const std::vector<CallSpec>& calls) {
  if (setting.way != Way::Ranks && setting.way != Way::Ddp) return check_here(program, setting, calls, {});
  return check_on_ranks(program, setting, calls);
}

// A graph has its own copy of an argument that it changes, so a later write under PreserveVersion does not reach the
// copy (docs/COMPILE.md). Returns whether this explains a wrong gradient. It does in two cases. In the first, the
// backward needs the overwritten values, so eager mode refuses the backward if autograd counts the writes. In the
// second, the back end changes layouts, and the gradient is right without this change.
bool needs_what_it_overwrites(const Outcome& outcome, const Program& program, const Setting& setting,
                              const std::vector<CallSpec>& calls) {
  if (!outcome.difference || !outcome.difference->kind.starts_with("wrong gradient")) return false;
  if (setting.layouts && has_uncounted_writes(program.statements)) {
    Setting without_layouts = setting;
    without_layouts.layouts = std::nullopt;
    if (!check_as_it_is(program, without_layouts, calls).difference) return true;
  }
  if (!has_uncounted_writes(program.statements) || (!setting.behind_read && outcome.refusal.empty())) return false;
  return changed_since(check_as_it_is(with_counted_writes(program), setting, calls).eager_error);
}

// The history of a result may lead to a parameter or leaf that no backward reaches, for example through a collective
// without a formula for its gradient. Then DDP may count the parameter as used and give it zeros in eager mode but not
// in a graph, or the other way round (docs/COMPILE.md). Without DDP the gradient of such a parameter is undefined.
bool is_of_an_unreached_parameter(const Outcome& outcome, const Program& program, const Setting& setting,
                                  const std::vector<CallSpec>& calls) {
  if (setting.way != Way::Ddp || !outcome.difference || !outcome.difference->zeros_or_undefined) return false;
  const std::vector<CallSpec> until_then(calls.begin(), calls.begin() + outcome.call + 1);
  const Outcome without_ddp = check_as_it_is(program, {.name = "ranks", .way = Way::Ranks}, until_then);
  return without_ddp.call == outcome.call && without_ddp.undefined_gradients.contains(outcome.difference->fact);
}

// If a graph changes an argument, and a backward begins at this argument, the graph also calls the hooks of parameters
// that eager mode would not reach, and DDP throws. The error goes away if the code returns its arguments, as
// docs/COMPILE.md says.
bool reaches_parameters_through_an_argument(const Outcome& outcome, const Program& program, const Setting& setting,
                                            const std::vector<CallSpec>& calls) {
  if (setting.way != Way::Ddp || !outcome.difference || !is_marked_ready_twice(*outcome.difference)) return false;
  Program with_arguments = program;
  for (int argument = 0; argument < program.first_free(); ++argument) with_arguments.results.push_back(argument);
  return !check_as_it_is(with_arguments, setting, calls).difference;
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {.name = "aot_eager"},
      {.name = "eager", .backend = "eager"},
      {.name = "function", .way = Way::Function},
      {.name = "dynamic", .dynamic = true},
      {.name = "static", .dynamic = false},
      {.name = "read", .behind_read = true},
      {.name = "read_eager", .backend = "eager", .behind_read = true},
      {.name = "fake_ddp", .way = Way::FakeDdp},
      {.name = "fake_ddp_eager", .way = Way::FakeDdp, .backend = "eager"},
      {.name = "fake_ddp_read", .way = Way::FakeDdp, .behind_read = true},
      {.name = "layouts", .way = Way::FakeDdp, .layouts = rehearse::test::Statement::True},
      {.name = "layouts_eager", .way = Way::FakeDdp, .backend = "eager", .layouts = rehearse::test::Statement::True},
      {.name = "layouts_unsaid", .way = Way::FakeDdp, .layouts = rehearse::test::Statement::None},
      {.name = "layouts_read", .behind_read = true, .layouts = rehearse::test::Statement::True},
      {.name = "ranks", .way = Way::Ranks},
      {.name = "ddp", .way = Way::Ddp},
      {.name = "ddp_eager", .way = Way::Ddp, .backend = "eager"},
      {.name = "in_hook", .place = Place::Hook},
      {.name = "in_function", .way = Way::Function, .place = Place::Function},
      {.name = "in_loss", .backend = "eager", .place = Place::Loss},
  };
  return all;
}

Program prepared(Program program, const Setting& setting) {
  if (setting.behind_read) add_read(program);
  // A reducer takes one backward for each forward.
  if (setting.way == Way::Ddp && program.backward == Backward::OneByOne) program.backward = Backward::SumOfAll;
  if (setting.way == Way::Ddp) program.change = Change::None;  // the run that changes a copy has no DDP
  return program;
}

Outcome check(const Program& program, const Setting& setting, const std::vector<CallSpec>& calls) {
  Outcome outcome = check_as_it_is(program, setting, calls);
  const std::set<std::string> families = families_of(program.statements);
  if ((outcome.difference && is_documented_error(*outcome.difference, families)) || is_error_of_eager_alone(outcome) ||
      is_result_from_outside(outcome) || needs_what_it_overwrites(outcome, program, setting, calls) ||
      is_of_an_unreached_parameter(outcome, program, setting, calls) ||
      reaches_parameters_through_an_argument(outcome, program, setting, calls)) {
    outcome.difference.reset();
  }
  if (misses_an_error(outcome)) {
    // A graph drops unused code, and its errors with it. That is no difference.
    Program all = program;
    all.returns_all = true;
    if (!misses_an_error(check_as_it_is(all, setting, calls))) outcome.difference.reset();
  }
  const bool is_refused = !outcome.refusal.empty() && !outcome.difference;
  if (is_refused && !is_documented_refusal(outcome.refusal, families)) {
    const std::string without_line = outcome.refusal.substr(0, outcome.refusal.find(", at "));
    outcome.difference = {kRefused + kind_of(without_line), outcome.refusal};
  }
  return outcome;
}

}  // namespace rehearse_test::differential
