// SPDX-License-Identifier: BSD-3-Clause
#include "differential/operators/trial.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <rehearse/compile/compile.h>

#include "differential/run/observe.h"

namespace rehearse_test::differential {
namespace {

using torch::jit::Stack;
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kCalls[] = {3, 3, 5, 7};
constexpr std::size_t kSamplesMost = 4;
constexpr int kAttemptsMost = 1600;

constexpr const char* kFillNothing[] = {"::empty",   "::new_empty",       "::resize",
                                        "::_resize", "::_make_dep_token", "::_empty"};

// LAPACK's answer has other bits where the memory begins at another place.
constexpr const char* kByAlignment = "aten::linalg_lstsq";

constexpr const char* kOfDevices[] = {"cudnn", "miopen", "_mps_", "triton", "cufft", "xla", "vulkan", "_xpu", "cuda"};

struct Way {
  const char* backend;
  std::optional<bool> dynamic;
};
constexpr Way kWays[] = {{"aot_eager", std::nullopt}, {"aot_eager", true}, {"eager", std::nullopt}};

bool runs(const c10::OperatorHandle& op, const Choice& choice, std::int64_t size, bool needs_grad) {
  try {
    auto sample = make_sample(op.schema(), choice, size, needs_grad);
    if (!sample) return false;
    op.callBoxed(sample->stack);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool runs_at_all_sizes(const c10::OperatorHandle& op, const Choice& choice, bool needs_grad) {
  return std::all_of(std::begin(kCalls), std::end(kCalls),
                     [&](std::int64_t size) { return runs(op, choice, size, needs_grad); });
}

// Equal for choices that make the same arguments.
std::string form_of(const c10::OperatorHandle& op, const Choice& choice) {
  const auto sample = make_sample(op.schema(), choice, 3, false);
  if (!sample) return "";
  std::ostringstream out;
  for (const c10::IValue& value : sample->stack) {
    if (!value.isTensor() && !value.isTensorList() && !value.isOptionalTensorList()) out << value << ";";
  }
  for (const at::Tensor& tensor : sample->inputs.arguments) out << tensor.scalar_type() << tensor.sizes();
  return out.str();
}

// Kernels of devices have overloads for the CPU that only call them.
bool is_of_a_device(const std::string& name) {
  return std::any_of(std::begin(kOfDevices), std::end(kOfDevices),
                     [&](const char* each) { return name.find(each) != std::string::npos; });
}

// Operators that leave memory as it was before.
bool fills_nothing(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return std::any_of(std::begin(kFillNothing), std::end(kFillNothing),
                     [&](const char* each) { return name.find(each) != std::string::npos; });
}

// A function's plain arguments are guarded, so all integers of a stack go along as such.
void add_integers(const c10::IValue& value, Integers& integers) {
  if (value.isInt()) integers.push_back(value.toInt());
  if (value.isIntList()) {
    for (const std::int64_t each : value.toIntVector()) integers.push_back(each);
  }
}

// Leaves other numbers in memory that is free: what an operator reads without having written it then differs.
void stir_memory(double with) {
  std::vector<at::Tensor> held;
  for (int round = 0; round < 4; ++round) {
    for (std::int64_t numbers = 1; numbers <= 512; numbers += numbers < 64 ? 1 : 37) {
      held.push_back(at::full({numbers}, with + round, at::kDouble));
    }
  }
}

class Twins {
 public:
  Twins(const c10::OperatorHandle& op, const Choice& choice, const Way& way, Place& place)
      : place_(place),
        op_(op),
        choice_(choice),
        needs_grad_((place.choice = choice.index, runs_at_all_sizes(op, choice, true))),
        compiled_(rehearse::compile(Call{&op_, &stack_}, {.backend = way.backend, .dynamic = way.dynamic})) {}

  Trial run() {
    for (const std::int64_t size : kCalls) {
      const auto difference = at_size(size);
      if (!difference) continue;
      const std::string why = difference->kind + " [" + first_line(difference->text) + "]";
      return {fate_of(*difference), 1, why, "size " + std::to_string(size) + ": " + difference->text};
    }
    const auto explained = compiled_.explain();
    if (!explained.refusal.empty()) return {Fate::Refused, 1, first_line(explained.refusal), explained.refusal};
    for (const auto& entry : explained.entries) {
      for (const auto& graph : entry.graphs) {
        if (!graph.eager_because.empty())
          return {Fate::RunsEagerly, 1, first_line(graph.eager_because), graph.eager_because};
      }
    }
    return {explained.stats.eager_calls > 0 ? Fate::Refused : Fate::Captured, 1, "", ""};
  }

 private:
  struct Call {
    const c10::OperatorHandle* op;
    const Stack* stack;
    Tensors operator()(const Tensors& tensors, const Integers&) const {
      Stack now = with_tensors(*stack, tensors);
      op->callBoxed(now);
      return tensors_in(now);
    }
  };

  static Fate fate_of(const Difference& difference) {
    return difference.kind.starts_with("throws") ? Fate::Throws : Fate::Wrong;
  }

  // Without the places in this file, and short.
  static std::string first_line(const std::string& text) {
    return text.substr(0, text.find_first_of(",\n")).substr(0, 100);
  }

  Observed seen(std::int64_t size, bool eagerly) {
    auto sample = make_sample(op_.schema(), choice_, size, needs_grad_);
    stack_ = sample->stack;
    Integers integers;
    for (const c10::IValue& value : stack_) add_integers(value, integers);
    place_ = {choice_.index, !eagerly};
    Observed found = observe(sample->inputs, {.draws = 11}, [&](const Tensors& tensors) {
      return eagerly ? Call{&op_, &stack_}(tensors, integers) : compiled_(tensors, integers);
    });
    place_.compiles = false;
    for (Fact& fact : found.facts) {
      if (fills_nothing(op_)) fact.values.reset();
      if (op_.operator_name().name == kByAlignment) fact.exact = false;
    }
    return found;
  }

  // Nothing for an operator that eager gives two answers for: memory that it does not fill.
  std::optional<Difference> at_size(std::int64_t size) {
    const Observed eager = seen(size, true);
    for (const double with : {-3.5, 1e9}) {
      stir_memory(with);
      if (compare(eager, seen(size, true))) return std::nullopt;
    }
    return compare(eager, seen(size, false));
  }

  Place& place_;
  const c10::OperatorHandle& op_;
  const Choice& choice_;
  bool needs_grad_;
  Stack stack_;
  rehearse::Compiled<Call> compiled_;
};

}  // namespace

const char* to_string(Fate fate) {
  switch (fate) {
    case Fate::Captured:
      return "captured";
    case Fate::RunsEagerly:
      return "runs eagerly";
    case Fate::Refused:
      return "refused";
    case Fate::NoSamples:
      return "no samples";
    case Fate::Throws:
      return "throws";
    case Fate::Wrong:
      return "wrong";
    case Fate::Crashes:
      return "crashes";
  }
  return "";
}

std::vector<c10::OperatorHandle> operators_of_the_cpu() {
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) && !is_of_a_device(name.name)) {
      found.push_back(*op);
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return c10::toString(a.operator_name()) < c10::toString(b.operator_name());
  });
  return found;
}

std::vector<Choice> working_choices(const c10::OperatorHandle& op, std::size_t most, const std::set<int>& skipped,
                                    Place& place) {
  std::vector<Choice> working;
  std::set<std::string> tried;
  int attempts = 0;
  const auto works = [&](const Choice& choice) {
    place.choice = choice.index;
    if (skipped.contains(choice.index)) return false;
    const std::string form = form_of(op, choice);
    if (form.empty() || (choice.is_plain() && !tried.insert(form).second)) return false;
    ++attempts;
    return runs_at_all_sizes(op, choice, false);
  };
  for (const Choice& choice : all_choices()) {
    if (working.size() == most || attempts > kAttemptsMost) break;
    if (works(choice)) working.push_back(choice);
  }
  const std::vector<Choice> plain = working;
  int index = static_cast<int>(all_choices().size());
  for (bool Choice::* const variant : {&Choice::strided, &Choice::empty}) {
    for (Choice choice : plain) {
      choice.*variant = true;
      choice.index = index++;
      if (!works(choice)) continue;
      working.push_back(choice);
      break;
    }
  }
  return working;
}

Trial try_operator(const c10::OperatorHandle& op, const std::set<int>& skipped, Place& place) {
  Trial worst;
  const std::vector<Choice> choices = working_choices(op, kSamplesMost, skipped, place);
  if (choices.empty()) return worst;
  worst.fate = Fate::Captured;
  for (const Choice& choice : choices) {
    for (const Way& way : kWays) {
      Trial trial = Twins(op, choice, way, place).run();
      if (trial.fate <= worst.fate) continue;
      const std::string dynamic = way.dynamic ? ", dynamic" : "";
      trial.why += " (" + std::string(way.backend) + dynamic + ", " + choice.text() + ")";
      worst = trial;
    }
  }
  worst.samples = static_cast<int>(choices.size());
  return worst;
}

}  // namespace rehearse_test::differential
