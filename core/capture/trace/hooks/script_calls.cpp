// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/mobile/interpreter.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <rehearse/capture/segments.h>
#include <rehearse/hash/word_hash.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/operators/capture_mode.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/hooks/process_hooks.h"
#include "capture/trace/operators/treatment.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

using c10::IValue;
using torch::jit::GraphExecutor;
using torch::jit::Stack;

// The addresses of LibTorch's functions that ours replace.
struct Replaced {
  void* run = function("_ZN5torch3jit13GraphExecutor3runERSt6vectorIN3c106IValueESaIS4_EE");
  void* run_async =
      function("_ZN5torch3jit13GraphExecutor8runAsyncERSt6vectorIN3c106IValueESaIS4_EESt8functionIFvS8_IFvvEEEE");
  void* train = function("_ZN5torch3jit6Module5trainEb");
  void* run_mobile = function("_ZN5torch3jit6mobile16InterpreterState3runERSt6vectorIN3c106IValueESaIS5_EE");

  static void* function(const char* name) {
    void* const address = ::dlsym(RTLD_NEXT, name);
    REHEARSE_CHECK(address != nullptr, name);
    return address;
  }
};

const Replaced& replaced() {
  static const Replaced functions;
  return functions;
}

void run_script(GraphExecutor& executor, Stack& stack) {
  reinterpret_cast<void (*)(GraphExecutor*, Stack&)>(replaced().run)(&executor, stack);
}

using Exchange = std::function<at::Tensor(const at::Tensor&)>;

// Copies lists, dicts and tuples. Replaces each tensor in them.
IValue copy_of(const IValue& value, const Exchange& exchange) {
  if (value.isTensor()) return exchange(value.toTensor());
  if (value.isTuple()) {
    std::vector<IValue> items;
    for (const IValue& item : value.toTupleRef().elements()) items.push_back(copy_of(item, exchange));
    return c10::ivalue::Tuple::createNamed(std::move(items), value.toTupleRef().type());
  }
  if (value.isList()) {
    c10::impl::GenericList copy(value.toList().elementType());
    for (const IValue& item : value.toListRef()) copy.push_back(copy_of(item, exchange));
    return copy;
  }
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    c10::impl::GenericDict copy(dict.keyType(), dict.valueType());
    for (const auto& entry : dict) copy.insert(copy_of(entry.key(), exchange), copy_of(entry.value(), exchange));
    return copy;
  }
  return value;
}

Stack copy_of(const Stack& stack, const Exchange& exchange) {
  Stack copy;
  for (const IValue& value : stack) copy.push_back(copy_of(value, exchange));
  return copy;
}

std::vector<at::Tensor> tensors_of(const Stack& stack) {
  std::vector<at::Tensor> tensors;
  copy_of(stack, [&](const at::Tensor& tensor) { return tensors.emplace_back(tensor); });
  return tensors;
}

bool is_plain(const IValue& value) {
  return value.isNone() || value.isBool() || value.isInt() || value.isDouble() || value.isComplexDouble() ||
         value.isString() || value.isDevice() || value.isList() || value.isTuple() || value.isGenericDict();
}

// Everything but the tensors, as text.
struct Text {
  std::string text;
  std::string lacks = {};  // the kind of a value that no text tells, such as an object of a script class
};

Text text_of(const Stack& stack) {
  Text of;
  std::ostringstream out;
  for (const IValue& value : stack) {
    value.repr(out, [&of](std::ostream& stream, const IValue& part) {
      if (part.isTensor()) {
        stream << (part.toTensor().defined() ? "tensor" : "undefined");
      } else if (part.isModule()) {
        stream << "module " << static_cast<const void*>(part.toObject().get());
      } else if (is_plain(part)) {
        return false;
      } else {
        of.lacks = part.tagKind();
      }
      return true;
    });
    out << "; ";
  }
  of.text = out.str();
  return of;
}

// Adds the modes (train(), eval()) or all attributes, also those of modules inside. Of a tensor, which one it is.
void add_state(WordHash& hash, const IValue& value, bool modes_alone) {
  if (value.isObject()) {
    const auto& object = value.toObjectRef();
    for (std::size_t i = 0; i < object.slots().size(); ++i) {
      const IValue& slot = object.slots()[i];
      if (!modes_alone || slot.isObject() || object.type()->getAttributeName(i) == "training")
        add_state(hash, slot, modes_alone);
    }
  } else if (value.isTensor()) {
    hash.add(reinterpret_cast<std::uintptr_t>(value.toTensor().unsafeGetTensorImpl()));
  } else if (value.isBool()) {
    hash.add(std::uint64_t{value.toBool()});
  } else if (is_plain(value)) {
    std::ostringstream out;
    value.repr(out, [&](std::ostream&, const IValue& part) {
      if (!part.isTensor() && is_plain(part)) return false;
      add_state(hash, part, modes_alone);
      return true;
    });
    hash.add(out.str());
  }
}

// Script code may change the lists and dicts that it gets.
void assign(const IValue& to, const IValue& from) {
  if (to.isList()) {
    auto list = to.toList();
    list.clear();
    for (const IValue& item : from.toListRef()) list.push_back(item);
  } else if (to.isGenericDict()) {
    auto dict = to.toGenericDict();
    dict.clear();
    for (const auto& entry : from.toGenericDict()) dict.insert(entry.key(), entry.value());
  } else if (to.isTuple()) {
    for (std::size_t i = 0; i < to.toTupleRef().size(); ++i) {
      assign(to.toTupleRef().elements()[i], from.toTupleRef().elements()[i]);
    }
  }
}

// One call of script code. Keeps the module alive, but none of the tensors.
class ScriptCall final : public EagerRegion {
 public:
  struct Result final : RegionResult {
    Stack outputs;
    Text text;           // of the outputs
    Stack changed = {};  // the arguments behind the call, if it changed a list or a dict; otherwise empty

    std::vector<at::Tensor> tensors() override { return tensors_of(outputs); }
    void replace(const std::vector<at::Tensor>& tensors) override {
      std::size_t next = 0;
      outputs = copy_of(outputs, [&](const at::Tensor&) { return tensors.at(next++); });
    }
    std::string constants() override { return text.text; }
    bool must_end() const override { return !text.lacks.empty() || !changed.empty(); }
  };

  ScriptCall(const GraphExecutor& executor, const Stack& stack) : executor_(executor), text_(text_of(stack)) {
    arguments_ = copy_of(stack, [this](const at::Tensor& tensor) {
      is_defined_.push_back(tensor.defined());
      return at::Tensor();
    });
  }

  std::string title() const override {
    for (const IValue& argument : arguments_) {
      if (argument.isModule()) return "the script module " + argument.type()->annotation_str();
    }
    return "a TorchScript function";
  }
  // All modules of one type share their executors, so the text also has the address of the module.
  std::string identity() const override {
    static_assert(sizeof executor_ == sizeof(std::shared_ptr<void>));  // the only, private, member
    return std::string(reinterpret_cast<const char*>(&executor_), sizeof executor_) + text_.text;
  }

  State state() const override {
    WordHash modes(1), all(1);
    bool has_module = false;
    for (const IValue& argument : arguments_) {
      if (!argument.isModule()) continue;
      has_module = true;
      add_state(modes, argument, true);
      add_state(all, argument, false);
    }
    return has_module ? State{modes.value() | 1, all.value() | 1} : State();
  }

  // Throws NotCapturable if the arguments hide a captured tensor.
  void check() const {
    const auto refuse = [this](const std::string& why) {
      throw NotCapturable(title() + " is called in a captured function, and " + why, kCallOutside, call_stack());
    };
    if (!text_.lacks.empty()) refuse("gets a value of the kind " + text_.lacks);
    for (const IValue& argument : arguments_) {
      argument.visit([&](const IValue& part) {
        if (part.isTensor() && is_fake(part.toTensor())) refuse("has a captured tensor as an attribute");
        return false;
      });
    }
  }

  std::shared_ptr<RegionResult> run(std::vector<at::Tensor> tensors) const override {
    std::size_t position = 0, next = 0;
    const Stack given = copy_of(
        arguments_, [&](const at::Tensor&) { return is_defined_[position++] ? tensors.at(next++) : at::Tensor(); });
    const std::string before = text_of(given).text;
    const std::vector<at::Tensor> had = tensors_of(given);
    auto result = std::make_shared<Result>();
    result->outputs = given;
    GraphExecutor executor = executor_;
    run_script(executor, result->outputs);
    result->text = text_of(result->outputs);
    const auto is_same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
    const std::vector<at::Tensor> has = tensors_of(given);
    const bool same = std::equal(had.begin(), had.end(), has.begin(), has.end(), is_same);
    if (!same || text_of(given).text != before) result->changed = given;
    return result;
  }

 private:
  const GraphExecutor executor_;
  const Text text_;
  Stack arguments_;
  std::vector<bool> is_defined_;  // for each tensor of the arguments
};

// Returns false if no captured code calls the script code.
bool run_for_captured_code(const GraphExecutor& executor, Stack& stack) {
  Tracer* const tracer = is_any_captured() ? Tracer::current() : nullptr;
  if (tracer == nullptr || tracer->is_in_operator()) return false;
  const auto call = std::make_shared<ScriptCall>(executor, stack);
  std::vector<at::Tensor> tensors = tensors_of(stack);
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  try {
    if (!tracer->rest()) call->check();
  } catch (const NotCapturable& refusal) {
    if (!tracer->go_on_after(refusal)) throw;
  }
  const std::shared_ptr<RegionResult> result = run_region(call, tensors);
  auto& own = static_cast<ScriptCall::Result&>(*result);
  for (std::size_t i = 0; i < own.changed.size(); ++i) assign(stack[i], own.changed[i]);
  stack = own.outputs;
  own.replace(std::vector<at::Tensor>(tensors_of(stack).size()));  // the result outlives the call
  return true;
}

void end_or_refuse(const char* what) {
  const auto* const mode = operators::CaptureMode::current();
  if (mode != nullptr && !mode->has_ended() && !mode->is_in_operator()) mode->end_or_refuse(what, kCallOutside);
}

}  // namespace

void watch_script_calls() { replaced(); }

}  // namespace rehearse::capture

// These definitions replace LibTorch's functions, because the executable's definition takes precedence over a
// library's.
void torch::jit::GraphExecutor::run(Stack& inputs) {
  if (!rehearse::capture::run_for_captured_code(*this, inputs)) rehearse::capture::run_script(*this, inputs);
}

c10::intrusive_ptr<c10::ivalue::Future> torch::jit::GraphExecutor::runAsync(Stack& stack, TaskLauncher launcher) {
  if (!rehearse::capture::run_for_captured_code(*this, stack)) {
    using Run = c10::intrusive_ptr<Future> (*)(GraphExecutor*, Stack&, TaskLauncher);
    return reinterpret_cast<Run>(rehearse::capture::replaced().run_async)(this, stack, std::move(launcher));
  }
  auto future = c10::make_intrusive<Future>(stack.back().type());
  future->markCompleted(stack.back());
  return future;
}

// A graph cannot switch the module again, and code that only asks for the mode leaves no trace.
void torch::jit::Module::train(bool on) {
  rehearse::capture::end_or_refuse("train() or eval() of a script module");
  reinterpret_cast<void (*)(Module*, bool)>(rehearse::capture::replaced().train)(this, on);
}

// The mobile interpreter gives no hold on its code beyond the call, so no region can run the code again.
bool torch::jit::mobile::InterpreterState::run(Stack& stack) {
  rehearse::capture::end_or_refuse("a module of the mobile interpreter");
  return reinterpret_cast<bool (*)(InterpreterState*, Stack&)>(rehearse::capture::replaced().run_mobile)(this, stack);
}
