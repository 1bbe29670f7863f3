// SPDX-License-Identifier: BSD-3-Clause
#include "compile/capture_call.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/capture/segments.h>
#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/shapes/errors.h>

#include "checks/values/module_tensors.h"
#include "compile/arguments/marks.h"
#include "compile/guards/module_modes.h"
#include "compile/parts/eager_backend.h"
#include "compile/segments/segmented_capture.h"

namespace rehearse::compiler {
namespace {

std::vector<capture::NamedTensor> tensors_of(const CallView& call) {
  std::vector<capture::NamedTensor> tensors;
  if (!call.module) return tensors;
  const auto add = [&](std::vector<checks::ModuleTensor> of_module) {
    for (auto& each : of_module) {
      const auto& ignored = call.ddp_ignored;
      const bool is_ignored = std::find(ignored.begin(), ignored.end(), each.name) != ignored.end();
      tensors.push_back({std::move(each.name), std::move(each.tensor), !each.is_buffer, is_ignored});
    }
  };
  add(checks::parameters_of(*call.module));
  add(checks::buffers_of(*call.module));
  return tensors;
}

// Of the first node that uses the placeholder.
std::shared_ptr<const graph::Origin> origin_of_use(const graph::Node& placeholder) {
  for (const graph::Node* user : placeholder.users()) {
    if (user->meta().origin) return user->meta().origin;
  }
  return nullptr;
}

bool has_symbols(const std::vector<LeafShape>& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const LeafShape& leaf) { return !leaf.symbols.empty(); });
}

bool is_marked(const SymbolPlace& place, const LeafList& leaves) {
  if (place.dimension < 0) return false;
  const std::vector<Mark> marks = marks_of(*leaves[place.leaf].tensor);
  return std::any_of(marks.begin(), marks.end(), [&](const Mark& mark) {
    return mark.dynamic && mark.dimension == static_cast<std::size_t>(place.dimension);
  });
}

// The first one that gives the symbol a value, else the last one that bounds it. Null: none has the symbol.
const shapes::Guard* guard_that_fixes(const std::string& symbol, const shapes::ShapeEnv& shapes) {
  const shapes::Guard* last = nullptr;
  for (const shapes::Guard& guard : shapes.guards()) {
    const auto symbols = guard.condition.symbols();
    if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) continue;
    if (guard.condition.kind() == shapes::Condition::Kind::Equal) return &guard;
    last = &guard;
  }
  return last;
}

class CallCapture {
 public:
  CallCapture(const CallView& call, std::vector<LeafShape> shape, SegmentedCapture* segments)
      : call_(call),
        segments_(segments),
        shapes_(shapes::ShapeEnv::make({.duck_shaping = !has_symbols(shape)})),
        tracer_(shapes_, tensors_of(call)) {
    result_.shape = std::move(shape);
  }

  Capture run(UserCode& code) {
    add_inputs();
    if (segments_) {
      segments_->bind(shapes_, leaves_);
      tracer_.set_listener(*segments_);
    }
    WatchList watches;
    {
      const WatchScope scope(watches, __builtin_frame_address(0));
      const parallel::DdpRecorder recorder;
      run_code(code);
      result_.ddp = recorder.seen();
    }
    refuse_changes(code);
    std::vector<c10::IValue> outputs = code.values();
    if (tracer_.ended()) {
      for (c10::IValue& output : outputs) output = tracer_.real_value(output);
      code.served = CallResult{code.take_frame(), std::move(outputs)};
      return {};
    }
    captured_ = tracer_.finish(outputs);
    outputs.clear();
    result_.constants = code.constants();
    result_.frame = code.take_frame();
    note_reads();
    stand_ins_ = {};
    if (captured_.last_segment) {
      code.served =
          CallResult{result_.frame, segments_->finish(*captured_.last_segment, result_.constants, result_.frame)};
    }
    refuse_fixed_marks(call_.leaves, places_, *shapes_);
    bind_inputs();
    add_guards(std::move(watches));
    result_.remarks = std::move(captured_.remarks);
    result_.module = captured_.module;
    result_.shapes = shapes_;
    return std::move(result_);
  }

 private:
  void refuse_changes(const UserCode& code) const {
    const std::string name = code.unrepeatable_argument(call_.argument_names);
    if (name.empty()) return;
    const std::string what =
        "the function puts another tensor, or a size, into its argument " + name + ", which it has by reference";
    if (!tracer_.ended()) throw capture::NotCapturable(what, "Return it instead.", {});
    throw CompileError(what + ", in a call that ran eagerly from a read on. Return it instead");
  }

  // What the code has done before it throws is done, as it would be without a capture.
  void run_code(UserCode& code) {
    try {
      tracer_.run([&] { code.run(stand_ins_); });
      refuse_other_state();
    } catch (const capture::FakeError&) {
      call_.state.restore();
      throw;
    } catch (const shapes::ShapeError&) {
      call_.state.restore();
      throw;
    } catch (const CompileError&) {
      throw;
    } catch (const RankAborted&) {
      throw;
    } catch (...) {
      run_unfinished();
      code.change_arguments();
      throw;
    }
  }

  // A mode that the code leaves on would be on for the rest of the caller, too.
  void refuse_other_state() const {
    GlobalState now = GlobalState::current();
    now.types = call_.state.types;
    if (!call_.module) now.module_modes = module_modes();
    if (tracer_.ended() || now == call_.state) return;
    const GuardFailure changed = difference(call_.state, now);
    throw capture::NotCapturable("the function changes " + changed.source + " from " + changed.expected + " to " +
                                     changed.found + " and leaves it so",
                                 "Change it back before the function returns, or change it outside.", {});
  }

  void run_unfinished() {
    if (tracer_.ended()) return;
    if (segments_) return segments_->run_unfinished([&] { return tracer_.unfinished(); });
    const capture::Segment segment = tracer_.unfinished();
    std::vector<InputBinding> inputs;
    for (const auto& source : segment.sources) {
      inputs.push_back(binding_of(std::get<capture::GraphInput>(source), leaves_));
    }
    by_operators(segment.module)(values_of(inputs, call_.leaves));
  }

  void add_inputs() {
    stand_ins_.tensors.resize(call_.leaves.size());
    stand_ins_.ints.resize(call_.leaves.size());
    for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) {
      if (call_.leaves[i].kind == LeafKind::Tensor) add_tensor(i);
      if (call_.leaves[i].kind == LeafKind::SymInt && result_.shape[i].symbolic_int) add_int(i);
    }
  }

  void add_tensor(std::uint32_t leaf) {
    LeafShape& shape = result_.shape[leaf];
    std::vector<c10::SymInt> sizes(shape.sizes.begin(), shape.sizes.end());
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (!shape.varies[d]) continue;
      const std::string name = fmt::format("{}.size({})", call_.sources[leaf], d);
      sizes[d] = symbol_of(shape, d, name);
      shape.varies[d] = sizes[d].is_symbolic();  // 0 and 1 are always themselves
      if (shape.varies[d]) places_.push_back({leaf, static_cast<std::int32_t>(d)});
    }
    leaves_.tensors.push_back(leaf);
    stand_ins_.tensors[leaf] = tracer_.add_tensor(call_.sources[leaf], *call_.leaves[leaf].tensor, std::move(sizes));
  }

  // As equal sizes suggest; where the shape has been captured before, as it was then, whatever is equal now.
  c10::SymInt symbol_of(LeafShape& shape, std::size_t d, const std::string& name) {
    shape.symbols.resize(shape.sizes.size(), -1);
    const std::int32_t known = shape.symbols[d];
    const auto found = known < 0 ? symbols_.end() : symbols_.find(known);
    c10::SymInt size =
        found == symbols_.end() ? shapes_->add_backed(shape.sizes[d], name) : shapes_->add_source(found->second, name);
    if (!size.is_symbolic()) return size;
    const std::size_t symbol = shapes_->sources().back().symbol;
    if (known >= 0) symbols_.emplace(known, symbol);
    shape.symbols[d] = static_cast<std::int32_t>(symbol);
    return size;
  }

  void add_int(std::uint32_t leaf) {
    const std::string& name = call_.sources[leaf];
    c10::SymInt value = shapes_->add_backed_int(*result_.shape[leaf].symbolic_int, name);
    if (!value.is_symbolic()) {  // 0 or 1
      result_.shape[leaf].symbolic_int.reset();
      return;
    }
    places_.push_back({leaf, -1});
    leaves_.ints.push_back(leaf);
    stand_ins_.ints[leaf] = tracer_.add_int(name, std::move(value));
  }

  // Code may look at sizes without a trace in the graph.
  void note_reads() {
    used_.resize(call_.leaves.size());
    for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) {
      used_[i] = stand_ins_.tensors[i].defined() && capture::layout_was_read(stand_ins_.tensors[i]);
    }
  }

  void bind_inputs() {
    origins_.resize(call_.leaves.size());
    const auto placeholders = captured_.module->graph().placeholders();
    for (std::size_t i = 0; i < captured_.inputs.size(); ++i) {
      const capture::GraphInput& input = captured_.inputs[i];
      result_.input_names.push_back(input.name);
      result_.inputs.push_back(binding_of(input, leaves_));
      const InputBinding& binding = result_.inputs.back();
      if (binding.kind == InputBinding::Kind::Captured) {
        add_captured(input);
        if (input.tensor.requires_grad() && input.tensor.is_leaf()) set_parameter(*placeholders[i]);
        continue;
      }
      used_[binding.index] = true;
      if (!origins_[binding.index]) origins_[binding.index] = origin_of_use(*placeholders[i]);
    }
  }

  void add_captured(const capture::GraphInput& input) {
    if (input.role == capture::GraphInput::Role::Constant) result_.kept_by_reference.push_back(input.name);
    result_.guards.add_captured(input.tensor, TensorGuard(input.tensor, input.name));
  }

  // A function has no module whose parameters are known; what it finds elsewhere and trains is one all the same.
  static void set_parameter(graph::Node& placeholder) {
    const graph::TensorMeta* known = placeholder.meta().tensor();
    if (!known || known->is_parameter) return;
    graph::TensorMeta meta = *known;
    meta.is_parameter = true;
    placeholder.meta().set_value(std::move(meta));
  }

  // Was this leaf, or the same tensor in another place, looked into?
  bool is_used(std::uint32_t leaf) const {
    for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) {
      if (!used_[i]) continue;
      if (i == leaf) return true;
      const Leaf& other = call_.leaves[i];
      if (other.kind == LeafKind::Tensor && other.tensor->is_same(*call_.leaves[leaf].tensor)) return true;
    }
    return false;
  }

  void add_guards(WatchList watches) {
    for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) {
      const Leaf& leaf = call_.leaves[i];
      if (leaf.kind == LeafKind::Tensor) {
        TensorGuard guard(*leaf.tensor, call_.sources[i], result_.shape[i].varies, is_used(i));
        guard.set_origin(origins_[i]);
        result_.guards.add_tensor(std::move(guard));
      } else if (leaf.kind == LeafKind::SymInt && result_.shape[i].symbolic_int) {
        result_.guards.add_symbol(call_.sources[i]);
      } else {
        result_.guards.add_value(leaf, call_.sources[i]);
      }
    }
    for (SymbolPlace& place : places_) place.is_used = place.dimension < 0 || is_used(place.leaf);
    result_.guards.set_state(call_.state);
    result_.guards.set_modules(ModuleGuard(call_.module));
    result_.guards.set_symbols(SymbolGuards(places_, shapes_));
    result_.guards.set_watches(std::move(watches));
    result_.guards.set_aliases(call_.leaves);
  }

  const CallView& call_;
  SegmentedCapture* const segments_;
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  capture::ForwardCapture tracer_;
  StandIns stand_ins_;
  CapturedLeaves leaves_;
  std::map<std::int32_t, std::size_t> symbols_;  // of an earlier capture: which they are now
  std::vector<SymbolPlace> places_;              // of the environment's sources
  capture::CapturedGraph captured_;
  std::vector<bool> used_;
  std::vector<std::shared_ptr<const graph::Origin>> origins_;  // of the first use of each leaf
  Capture result_;
};

}  // namespace

std::vector<LeafShape> shape_of(const CallView& call, const Dynamism& dynamism) {
  std::vector<LeafShape> shape(call.leaves.size());
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    const Leaf& leaf = call.leaves[i];
    const std::string& source = call.sources[i];
    if (leaf.kind == LeafKind::Tensor && capture::kind_without_fakes(*leaf.tensor).empty()) {
      shape[i].sizes = leaf.tensor->sizes().vec();
      for (std::size_t d = 0; d < shape[i].sizes.size(); ++d) {
        shape[i].varies.push_back(dynamism.is_dynamic_size(source, d));
      }
    } else if (leaf.kind == LeafKind::SymInt && dynamism.is_dynamic_int(source)) {
      shape[i].symbolic_int = leaf.sym_int->as_int_unchecked();
    }
  }
  return shape;
}

void refuse_fixed_marks(const LeafList& leaves, const std::vector<SymbolPlace>& places,
                        const shapes::ShapeEnv& shapes) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!is_marked(places[i], leaves)) continue;
    const shapes::SymbolSource& source = shapes.sources()[i];
    const std::string& symbol = shapes.backed()[source.symbol].name;
    const shapes::Range range = shapes.range(shapes::Expr::symbol(symbol));
    if (range.lower != range.upper) continue;
    const shapes::Guard* const guard = guard_that_fixes(symbol, shapes);
    const std::string line = guard ? guard->where.describe() : "";
    throw CompileError(fmt::format("{}{} was marked dynamic, but the code fixes it: {} ({})",
                                   line.empty() ? "" : line + ": ", source.text,
                                   guard ? guard->condition.text() : fmt::format("{} == {}", symbol, range.lower),
                                   guard ? guard->reason : "what the code states of sizes leaves no other value"));
  }
}

std::vector<LeafShape> with_sizes_of(std::vector<LeafShape> shape, const LeafList& leaves) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (leaves[i].kind == LeafKind::Tensor) shape[i].sizes = leaves[i].tensor->sizes().vec();
    if (shape[i].symbolic_int) shape[i].symbolic_int = leaves[i].sym_int->as_int_unchecked();
  }
  return shape;
}

Capture capture_call(const CallView& call, std::vector<LeafShape> shape, UserCode& code, SegmentedCapture* segments) {
  return CallCapture(call, std::move(shape), segments).run(code);
}

}  // namespace rehearse::compiler
