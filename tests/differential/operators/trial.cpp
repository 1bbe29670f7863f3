// SPDX-License-Identifier: BSD-3-Clause
#include "differential/operators/trial.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include <ATen/core/grad_mode.h>

#include <rehearse/compile/compile.h>

#include "differential/run/observe.h"

namespace rehearse_test::differential {
namespace {

using torch::jit::Stack;
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kCalls[] = {3, 3, 5, 7}, kSizes[] = {3, 5, 7};
constexpr std::size_t kSamplesMost = 4;
constexpr int kSamplesLeast = 3;  // one of them with an empty or non-contiguous tensor
constexpr int kInOtherForms = 2;  // samples that are tried in other forms, too
constexpr int kAttemptsMost = 1600;

constexpr const char* kFillNothing[] = {"::empty",   "::new_empty",       "::resize",
                                        "::_resize", "::_make_dep_token", "::_empty"};

// LAPACK's answer has other bits if the memory starts at another alignment.
constexpr const char* kByAlignment = "aten::linalg_lstsq";

constexpr const char* kOfDevices[] = {"cudnn", "miopen", "_mps_", "triton", "cufft", "xla", "vulkan", "_xpu", "cuda"};

// Operators for sparse, quantized, nested, mkldnn and packed tensors, process groups, storages, devices, and
// forward-mode gradients have these namespaces, or these parts in their names.
constexpr const char* kForeignNamespaces[] = {
    "_c10d_functional",   "c10d::",         "_dtensor::", "symm_mem::", "quantized::",
    "_quantized::",       "quantization::", "mkldnn::",   "onednn::",   "prepacked::",
    "mkldnn_prepacked::", "sparse::",       "profiler::"};
constexpr const char* kForeignNames[] = {"sparse",       "nested",      "jagged",      "quantize",
                                         "mkldnn",       "fbgemm",      "_dual",       "fw_primal",
                                         "Storage",      "pin_memory",  "coalesce",    "crow_indices",
                                         "ccol_indices", "row_indices", "col_indices", "wrapped_linear"};

struct Way {
  const char* backend;
  std::optional<bool> dynamic;
};
constexpr Way kWays[] = {{"aot_eager", std::nullopt}, {"aot_eager", true}, {"eager", std::nullopt}};

// The beginning of the text, up to the first comma or line end, and at most 100 characters.
std::string in_short(const std::string& text) { return text.substr(0, text.find_first_of(",\n")).substr(0, 100); }

// what() of LibTorch's errors looks up the names of frames, which takes longer than the call.
void note_first(const std::exception& thrown, std::string* error) {
  if (!error || !error->empty()) return;
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&thrown);
  *error = in_short(of_libtorch ? of_libtorch->what_without_backtrace() : thrown.what());
}

bool runs(const c10::OperatorHandle& op, const Choice& choice, std::int64_t size, bool needs_grad, std::string* error) {
  const at::AutoGradMode mode(choice.grad);
  try {
    auto sample = make_sample(op.schema(), choice, size, needs_grad);
    if (!sample) return false;
    op.callBoxed(sample->stack);
    return true;
  } catch (const std::exception& thrown) {
    note_first(thrown, error);
    return false;
  }
}

bool runs_at_all_sizes(const c10::OperatorHandle& op, const Choice& choice, bool needs_grad,
                       std::string* error = nullptr) {
  return std::all_of(std::begin(kSizes), std::end(kSizes),
                     [&](std::int64_t size) { return runs(op, choice, size, needs_grad, error); });
}

std::optional<Sample> sample_if_any(const c10::OperatorHandle& op, const Choice& choice, std::string* error) {
  try {
    return make_sample(op.schema(), choice, kSizes[0], false);
  } catch (const std::exception& thrown) {
    note_first(thrown, error);
    return std::nullopt;
  }
}

// Returns the same text for choices whose arguments have the same numbers, dtypes and sizes. Returns an empty text if
// make_sample() makes no sample, or throws.
std::string form_of(const c10::OperatorHandle& op, const Choice& choice, std::string* error) {
  const auto sample = sample_if_any(op, choice, error);
  if (!sample) return "";
  std::ostringstream out;
  out << "form ";
  for (const c10::IValue& value : sample->stack) {
    if (!value.isTensor() && !value.isTensorList() && !value.isOptionalTensorList()) out << value << ";";
  }
  for (const at::Tensor& tensor : sample->inputs.arguments) out << tensor.scalar_type() << tensor.sizes();
  return out.str();
}

// An operator of another device may have an overload with a CPU kernel that only calls the device's kernel.
bool is_of_a_device(const std::string& name) {
  return std::any_of(std::begin(kOfDevices), std::end(kOfDevices),
                     [&](const char* each) { return name.find(each) != std::string::npos; });
}

// Recognises operators that leave their results uninitialised.
bool fills_nothing(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return std::any_of(std::begin(kFillNothing), std::end(kFillNothing),
                     [&](const char* each) { return name.find(each) != std::string::npos; });
}

// The compiled function gets all integers of the stack as plain arguments, so that guards compare them.
void add_integers(const c10::IValue& value, Integers& integers) {
  if (value.isInt()) integers.push_back(value.toInt());
  if (value.isIntList()) {
    for (const std::int64_t each : value.toIntVector()) integers.push_back(each);
  }
}

// Fills free memory with other numbers, so that an operator that reads uninitialised memory gives another result.
void stir_memory(double with) {
  std::vector<at::Tensor> held;
  for (int round = 0; round < 4; ++round) {
    for (std::int64_t numbers = 1; numbers <= 512; numbers += numbers < 64 ? 1 : 37) {
      held.push_back(at::full({numbers}, with + round, at::kDouble));
    }
  }
}

// The operator as a function that compile() takes.
struct OperatorCall {
  const c10::OperatorHandle* op;
  const Stack* stack;
  Tensors operator()(const Tensors& tensors, const Integers&) const {
    Stack now = with_tensors(*stack, tensors);
    op->callBoxed(now);
    return tensors_in(now);
  }
};

bool is_empty(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.numel() == 0;
}

bool is_special(const at::Tensor& tensor) {
  return is_empty(tensor) || (tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_contiguous());
}

// Returns whether an argument is empty or not contiguous. `out` does not count, because it starts empty.
bool is_special(const c10::FunctionSchema& schema, const Stack& stack) {
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (schema.arguments()[i].is_out()) continue;
    const Tensors tensors = tensors_in({stack[i]});
    const auto special = [](const at::Tensor& tensor) { return is_special(tensor); };
    if (std::any_of(tensors.begin(), tensors.end(), special)) return true;
  }
  return false;
}

// Recognises operators that take no dense CPU tensor: eager mode's error says so, or the name has one of the namespaces
// or parts above.
bool is_for_others(const std::string& name, const std::string& error) {
  if (error.starts_with("Could not run '")) return true;  // the rest is "with arguments from the 'CPU' backend"
  const auto begins = [&](const char* each) { return name.starts_with(each); };
  const auto has = [&](const char* each) { return name.find(each) != std::string::npos; };
  return std::any_of(std::begin(kForeignNamespaces), std::end(kForeignNamespaces), begins) ||
         std::any_of(std::begin(kForeignNames), std::end(kForeignNames), has);
}

// Runs one choice of arguments in eager mode and compiled.
class Sampled {
 public:
  Sampled(const c10::OperatorHandle& op, const Choice& choice, TrialPlace& place)
      : place_(place),
        op_(op),
        choice_(choice),
        needs_grad_((place.choice = choice.index, runs_at_all_sizes(op, choice, true))) {
    for (const std::int64_t size : kSizes) eager_.emplace(size, by_eager(size));
  }

  // Returns false if two runs in eager mode gave different answers. Then the operator leaves memory uninitialised.
  bool has_answers() const {
    return std::all_of(eager_.begin(), eager_.end(), [](const auto& item) { return item.second.has_value(); });
  }
  bool is_special() const { return is_special_; }

  Trial compiled(const Way& way) {
    auto compiled = rehearse::compile(OperatorCall{&op_, &stack_}, {.backend = way.backend, .dynamic = way.dynamic});
    for (const std::int64_t size : kCalls) {
      const Observed now = seen(size, [&](const Tensors& tensors, const Integers& integers) {
        place_.compiles = true;
        return compiled(tensors, integers);
      });
      const auto difference = compare(*eager_.at(size), now);
      if (!difference) continue;
      const std::string why = difference->kind + " [" + in_short(difference->text) + "]";
      return {fate_of(*difference), 1, why, "size " + std::to_string(size) + ": " + difference->text};
    }
    return outcome_of(compiled.explain());
  }

 private:
  static Fate fate_of(const Difference& difference) {
    return difference.kind.starts_with("throws") ? Fate::Throws : Fate::Wrong;
  }

  static Trial outcome_of(const rehearse::compiler::Explanation& explained) {
    if (!explained.refusal.empty()) return {Fate::Refused, 1, in_short(explained.refusal), explained.refusal};
    for (const auto& entry : explained.entries) {
      for (const auto& graph : entry.graphs) {
        if (!graph.eager_because.empty())
          return {Fate::RunsEagerly, 1, in_short(graph.eager_because), graph.eager_because};
      }
    }
    return {explained.stats.eager_calls > 0 ? Fate::Refused : Fate::Captured, 1, "", ""};
  }

  Observed seen(std::int64_t size, const std::function<Tensors(const Tensors&, const Integers&)>& call) {
    auto sample = make_sample(op_.schema(), choice_, size, needs_grad_);
    stack_ = sample->stack;
    is_special_ = is_special_ || differential::is_special(op_.schema(), stack_);
    Integers integers;
    for (const c10::IValue& value : stack_) add_integers(value, integers);
    place_ = {choice_.index, false};
    const Around around{.draws = 11, .grad = choice_.grad};
    Observed found = observe(sample->inputs, around, [&](const Tensors& tensors) {
      Tensors results = call(tensors, integers);
      for (const at::Tensor& result : results) is_special_ = is_special_ || is_empty(result);
      return results;
    });
    place_.compiles = false;
    for (Fact& fact : found.facts) {
      if (fills_nothing(op_)) fact.values.reset();
      if (op_.operator_name().name == kByAlignment) fact.exact = false;
    }
    return found;
  }

  std::optional<Observed> by_eager(std::int64_t size) {
    const auto call = [this](const Tensors& tensors, const Integers& integers) {
      return OperatorCall{&op_, &stack_}(tensors, integers);
    };
    const Observed eager = seen(size, call);
    for (const double with : {-3.5, 1e9}) {
      stir_memory(with);
      if (compare(eager, seen(size, call))) return std::nullopt;
    }
    return eager;
  }

  TrialPlace& place_;
  const c10::OperatorHandle& op_;
  const Choice& choice_;
  bool needs_grad_, is_special_ = false;
  Stack stack_;
  std::map<std::int64_t, std::optional<Observed>> eager_;
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
    case Fate::ForOthers:
      return "not for dense CPU tensors";
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
                                    TrialPlace& place, std::string* error) {
  std::vector<Choice> working;
  std::set<std::string> tried;
  int attempts = 0;
  const auto works = [&](const Choice& choice) {
    place.choice = choice.index;
    if (skipped.contains(choice.index)) return false;
    const std::string form = form_of(op, choice, error);
    const bool by_schema = choice.is_plain() && choice.recipe < 0;
    if (form.empty() || (by_schema && !tried.insert(form).second)) return false;
    ++attempts;
    return runs_at_all_sizes(op, choice, false, error);
  };
  const std::vector<Choice> choices = choices_of(op.schema());
  for (const Choice& choice : choices) {
    if (working.size() == most || attempts > kAttemptsMost) break;
    if (works(choice)) working.push_back(choice);
  }
  const std::vector<Choice> plain = working;
  int index = static_cast<int>(choices.size());
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

namespace {

// Replaces `worst` if one of the ways has a worse result.
void try_ways(Sampled& sampled, const Choice& choice, std::span<const Way> ways, Trial& worst) {
  for (const Way& way : ways) {
    Trial trial = sampled.compiled(way);
    if (trial.fate <= worst.fate) continue;
    const std::string dynamic = way.dynamic ? ", dynamic" : "";
    trial.why += " (" + std::string(way.backend) + dynamic + ", " + choice.text() + ")";
    worst = trial;
  }
}

// LibTorch may lack a kernel for a form, or it may not define the operator's answer there. Such a form does not count.
void try_other_forms(const c10::OperatorHandle& op, const Choice& choice, const std::set<int>& skipped,
                     TrialPlace& place, Trial& worst) {
  for (const Choice& form : other_forms(op.schema(), choice)) {
    place.choice = form.index;
    if (skipped.contains(form.index) || !runs_at_all_sizes(op, form, form.leaves != Choice::Leaves::All)) continue;
    Sampled sampled(op, form, place);
    if (sampled.has_answers()) try_ways(sampled, form, std::span(kWays).first(1), worst);
  }
}

}  // namespace

Trial try_operator(const c10::OperatorHandle& op, const std::set<int>& skipped, TrialPlace& place) {
  std::string error;
  bool has_special = !takes_tensors(op.schema());
  const std::vector<Choice> choices = working_choices(op, kSamplesMost, skipped, place, &error);
  Trial worst{Fate::Captured, 0, "", ""};
  int samples = 0;
  for (const Choice& choice : choices) {
    Sampled sampled(op, choice, place);
    if (!sampled.has_answers()) continue;
    ++samples;
    has_special = has_special || sampled.is_special();
    try_ways(sampled, choice, kWays, worst);
    if (samples <= kInOtherForms) try_other_forms(op, choice, skipped, place, worst);
  }
  worst.samples = samples;
  if ((samples >= kSamplesLeast && has_special) || worst.fate >= Fate::Throws) return worst;
  const std::string few = std::to_string(choices.size()) + " work, " + std::to_string(samples) + " compared: ";
  const bool is_foreign = samples == 0 && is_for_others(c10::toString(op.operator_name()), error);
  return {is_foreign ? Fate::ForOthers : Fate::NoSamples, samples, few + error, ""};
}

}  // namespace rehearse_test::differential
