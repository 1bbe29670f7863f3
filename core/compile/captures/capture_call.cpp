// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/capture_call.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/capture/segments.h>
#include <rehearse/compile/errors.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/capture/left_fakes.h>
#include <rehearse_internal/exec/failure.h>

#include "checks/values/module_tensors.h"
#include "compile/captures/captured_use.h"
#include "compile/captures/fixed_marks.h"
#include "compile/captures/resolve_left_fakes.h"
#include "compile/guards/global_state.h"
#include "compile/guards/watch_list.h"
#include "compile/partitions/eager_backend.h"
#include "compile/segments/segmented_capture.h"

namespace rehearse::compiler {
namespace {

std::vector<capture::NamedTensor> tensors_of(const CallView& call) {
  std::vector<capture::NamedTensor> tensors;
  if (!call.module) return tensors;
  const auto add = [&](std::vector<checks::ModuleTensor> of_module) {
    for (auto& each : of_module) {
      const auto& ignored = call.ddp_ignored;
      const bool is_ignored = std::ranges::find(ignored, each.name) != ignored.end();
      tensors.push_back({std::move(each.name), std::move(each.tensor), !each.is_buffer, is_ignored});
    }
  };
  add(checks::parameters_of(*call.module));
  add(checks::buffers_of(*call.module));
  return tensors;
}

bool has_symbols(const std::vector<LeafShape>& shape) {
  return std::ranges::any_of(shape, [](const LeafShape& leaf) { return !leaf.symbols.empty(); });
}

class CallCapture {
 public:
  CallCapture(const CallView& call, std::vector<LeafShape> shape, SegmentedCapture* segments,
              const BeforeRunningOnce& before_running_once)
      : call_(call),
        segments_(segments),
        before_running_once_(before_running_once),
        shapes_(shapes::ShapeEnv::make({.duck_shaping = !has_symbols(shape)})),
        tracer_(shapes_, tensors_of(call)) {
    result_.shape = std::move(shape);
  }

  Capture run(UserCode& code) {
    add_inputs();
    CapturedUse use(call_, result_.shape);
    if (segments_) {
      segments_->bind(shapes_, leaves_);
      tracer_.set_listener(*segments_);
    }
    WatchList watches;
    {
      WatchScope scope(watches, code.end(), code.function());
      for (const Leaf& leaf : call_.leaves) {
        if (leaf.kind == LeafKind::Group) scope.add_guarded(leaf.group);
      }
      if (segments_) {
        segments_->set_objects_of_call(
            [&](const void* object) { return scope.ends_with_call(object) || code.is_in_function(object); });
      }
      const parallel::DdpRecorder recorder;
      run_code(code);
      guarded_groups_ = scope.guarded();
      replaces_group_ = scope.has_replaced_group();
      result_.ddp = recorder.seen();
    }
    std::vector<c10::IValue> outputs = code.values();
    if (!tracer_.ended()) end_if_regions_changed();
    if (!tracer_.ended()) end_if_unguarded(code);
    if (!tracer_.ended()) end_if_unrepeatable(code, outputs);
    if (tracer_.ended()) return serve(code, std::move(outputs));
    return finish(code, std::move(outputs), use, std::move(watches));
  }

  // Type of a module that the refused code has left in another mode than at its start; empty if there is none.
  const std::string& not_restored() const noexcept { return not_restored_; }
  // Call it last.
  capture::LeftFakes left(bool has_failed) { return tracer_.left(has_failed, find_value()); }
  std::vector<c10::IValue> inputs_of(const capture::Segment& segment) const {
    std::vector<c10::IValue> inputs;
    for (const auto& source : segment.sources) {
      const auto* const number = std::get_if<std::size_t>(&source);
      inputs.push_back(number ? find_value()(*number) : input(std::get<capture::GraphInput>(source)));
    }
    return inputs;
  }

 private:
  // Makes the capture of code that ran to its end on fakes.
  Capture finish(UserCode& code, std::vector<c10::IValue> outputs, CapturedUse& use, WatchList watches) {
    captured_ = tracer_.finish(outputs);
    note_results(outputs);
    outputs.clear();
    result_.constants = code.constants();
    result_.frame = code.take_frame();
    use.look_at(stand_ins_);
    stand_ins_ = {};
    if (captured_.last_segment) {
      result_.served =
          CallResult{result_.frame, segments_->finish(*captured_.last_segment, result_.constants, result_.frame)};
    }
    refuse_fixed_marks(call_.leaves, positions_, *shapes_);
    use.note_storages(std::move(captured_.storages));
    use.bind_inputs(captured_, leaves_, result_);
    for (const auto& region : tracer_.regions()) watches.add(std::make_shared<WatchedRegion>(region));
    use.add_guards(std::move(positions_), shapes_, std::move(watches), result_);
    result_.remarks = std::move(captured_.remarks);
    result_.module = captured_.module;
    result_.shapes = shapes_;
    return std::move(result_);
  }

  // Ends the capture if the recording serves this call, but no later one.
  void end_if_unrepeatable(const UserCode& code, const std::vector<c10::IValue>& outputs) {
    if (const exec::CallSite* kept = tracer_.find_kept(outputs)) {
      result_.keeps_tensors = true;
      end(capture::kept_tensor(*kept));
    }
    const std::string argument = code.unrepeatable_argument(call_.argument_names);
    if (argument.empty()) return;
    const capture::NotCapturable refusal(
        "the function puts another tensor, or a size, into its argument " + argument + ", which it has by reference",
        "Return it instead.", {});
    if (!segments_) throw refusal;
    result_.keeps_tensors = false;
    end(refusal);
  }

  void end_if_regions_changed() {
    for (const auto& each : tracer_.regions()) {
      if (each.holds()) continue;
      return end_by("the function switches or changes " + each.region->title(),
                    "Do it outside of the captured function.");
    }
  }

  // A group in the result becomes a constant of the entry, so a guard must check it.
  void end_if_unguarded(UserCode& code) {
    if (replaces_group_) return end_by("the function replaces a group in its own object", "Make it an argument.");
    for (c10d::ProcessGroup* const group : code.groups()) {
      if (guarded_groups_.contains(group)) continue;
      return end_by("the function returns " + title_of_group(group) + ", which is neither an argument nor watched",
                    kGuardTheGroup);
    }
  }

  void end_by(const std::string& what, const char* cure) {
    const capture::NotCapturable refusal(what, cure, {});
    if (!segments_) throw refusal;
    result_.keeps_tensors = false;
    end(refusal);
  }

  void note_results(const std::vector<c10::IValue>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_made = outputs[i].isTensor() && capture::is_fake(outputs[i].toTensor());
      if (is_made) result_.kept_results.emplace_back(outputs[i].toTensor(), i);
    }
  }

  void end(const capture::NotCapturable& refusal) {
    result_.refusal = refusal.what();
    if (tracer_.ended()) return;
    before_running_once_(result_.refusal, result_.keeps_tensors);
    if (!tracer_.end([this](const capture::SegmentEnd& end) { return run_unfinished(end); })) throw refusal;
  }

  // Makes the capture of code whose rest ran on real tensors.
  Capture serve(UserCode& code, std::vector<c10::IValue> outputs) {
    for (c10::IValue& output : outputs) output = tracer_.real_value(output);
    give_arguments(code);
    Capture ended;
    ended.served = CallResult{code.take_frame(), std::move(outputs)};
    ended.refusal = tracer_.refusal().empty() ? result_.refusal : tracer_.refusal();
    ended.keeps_tensors = tracer_.refusal().empty() && result_.keeps_tensors;
    return ended;
  }

  void give_arguments(const UserCode& code) const {
    if (!tracer_.ended()) return code.change_arguments();
    code.give_arguments([this](const c10::IValue& value) { return tracer_.real_value(value); });
  }

  // If the code throws, what it did before must take effect, as without a capture. If it is refused, the modes that it
  // has switched so far must not.
  void run_code(UserCode& code) {
    SavedState before;
    try {
      tracer_.run([&] { code.run(stand_ins_); });
      refuse_change(before);
    } catch (const capture::FakeError&) {
      not_restored_ = before.restore();
      throw;
    } catch (const shapes::ShapeError&) {
      not_restored_ = before.restore();
      throw;
    } catch (const CompileError&) {
      before.restore();
      throw;
    } catch (const RankAborted&) {
      throw;
    } catch (...) {
      if (!tracer_.ended() && may_run_once()) {
        tracer_.end([this](const capture::SegmentEnd& end) { return run_unfinished(end); });
      }
      give_arguments(code);
      throw;
    }
  }

  // False if another rank could not compile. Then no rank runs what it has recorded.
  bool may_run_once() const {
    try {
      before_running_once_("", false);
      return true;
    } catch (const CompileError&) {
      return false;
    }
  }

  // A mode that the code leaves on would also affect the rest of the caller.
  void refuse_change(const SavedState& before) const {
    if (tracer_.ended()) return;
    const std::optional<GuardFailure> changed = before.change();
    if (!changed) return;
    throw capture::NotCapturable("the function changes " + changed->source + " from " + changed->expected + " to " +
                                     changed->found + " and leaves it so",
                                 "Change it back before the function returns, or change it outside.", {});
  }

  capture::SegmentAnswer run_unfinished(const capture::SegmentEnd& end) {
    if (segments_) return segments_->run_unfinished(end);
    values_ = by_operators(end.before.module)(inputs_of(end.before));
    return {.values = {}, .value_of = [this](const capture::Segment::Source& source) {
              const auto* const value = std::get_if<std::size_t>(&source);
              return value ? values_.at(*value) : input(std::get<capture::GraphInput>(source));
            }};
  }

  c10::IValue input(const capture::GraphInput& input) const {
    return value_of(binding_of(input, leaves_), call_.leaves, {});
  }
  capture::FindValue find_value() const { return segments_ ? segments_->find_value() : capture::FindValue(); }

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
      shape.varies[d] = sizes[d].is_symbolic();  // the sizes 0 and 1 are never symbols
      if (shape.varies[d]) positions_.push_back({leaf, static_cast<std::int32_t>(d)});
    }
    leaves_.tensors.push_back(leaf);
    stand_ins_.tensors[leaf] = tracer_.add_tensor(call_.sources[leaf], *call_.leaves[leaf].tensor, std::move(sizes));
  }

  // Equal sizes share a symbol. If the shape was captured before, the earlier sharing applies, whatever is equal now.
  c10::SymInt symbol_of(LeafShape& shape, std::size_t d, const std::string& name) {
    shape.symbols.resize(shape.sizes.size(), -1);
    const std::int32_t known = shape.symbols[d];
    const auto found = known < 0 ? symbols_.end() : symbols_.find(known);
    if (known >= 0) shapes_->number_next(static_cast<std::size_t>(known));
    c10::SymInt size =
        found == symbols_.end() ? shapes_->add_backed(shape.sizes[d], name) : shapes_->add_source(found->second, name);
    if (!size.is_symbolic()) return size;
    const std::size_t symbol = shapes_->sources().back().symbol;
    if (known >= 0) symbols_.emplace(known, symbol);
    shape.symbols[d] = number_of(symbol);
    return size;
  }

  std::int32_t number_of(std::size_t symbol) const {
    return static_cast<std::int32_t>(shapes_->backed()[symbol].number);
  }

  void add_int(std::uint32_t leaf) {
    const std::string& name = call_.sources[leaf];
    LeafShape& shape = result_.shape[leaf];
    if (!shape.symbols.empty()) shapes_->number_next(static_cast<std::size_t>(shape.symbols.front()));
    c10::SymInt value = shapes_->add_backed_int(*shape.symbolic_int, name);
    if (!value.is_symbolic()) {  // 0 or 1
      shape.symbolic_int.reset();
      return;
    }
    shape.symbols = {number_of(shapes_->sources().back().symbol)};
    positions_.push_back({leaf, -1});
    leaves_.ints.push_back(leaf);
    stand_ins_.ints[leaf] = tracer_.add_int(name, std::move(value));
  }

  const CallView& call_;
  SegmentedCapture* const segments_;
  const BeforeRunningOnce& before_running_once_;
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  capture::ForwardCapture tracer_;
  StandIns stand_ins_;
  CapturedLeaves leaves_;
  std::map<std::int32_t, std::size_t> symbols_;  // from an earlier capture's numbers to this capture's symbols
  std::vector<SymbolPosition> positions_;        // for each source of the environment
  capture::CapturedGraph captured_;
  std::vector<c10::IValue> values_;               // of the graph so far, if a capture without segments_ ended early
  std::set<c10d::ProcessGroup*> guarded_groups_;  // used for membership tests only
  bool replaces_group_ = false;
  std::string not_restored_;
  Capture result_;
};

// Turns the fakes that the code keeps in members, globals and the like into real tensors. Returns whether the code
// keeps any.
bool make_real(std::optional<CallCapture>& capture, bool has_failed) {
  const capture::LeftFakes left = capture->left(has_failed);
  const auto inputs = left.segment.module ? capture->inputs_of(left.segment) : std::vector<c10::IValue>();
  capture.reset();
  return make_left_fakes_real(left, inputs);
}

// Throws if the code would run again from its start with the state that it kept in this run. It would, for example,
// update a running average twice.
void leave(std::optional<CallCapture>& capture, UserCode& code, const std::exception& refusal, bool would_run_again) {
  code.forget();
  const std::string module = capture->not_restored();
  const bool keeps_tensor = make_real(capture, true);
  if (!would_run_again || (!keeps_tensor && module.empty())) return;
  const std::string why = keeps_tensor
                              ? "the function keeps a tensor that is no result of it"
                              : "the function switches a " + module +
                                    " to train() or eval() that no shared_ptr owns, and does not switch it back";
  throw KeptInRefusedCall(why + ", and cannot be captured: " + refusal.what() +
                          " This call ends here; later calls run the function uncompiled. Put the refused code into an "
                          "eager_region(), or call the function once before it is compiled");
}

}  // namespace

Capture capture_call(const CallView& call, std::vector<LeafShape> shape, UserCode& code, SegmentedCapture* segments,
                     const BeforeRunningOnce& before_running_once) {
  std::optional<CallCapture> capture(std::in_place, call, std::move(shape), segments, before_running_once);
  Capture made;
  try {
    made = capture->run(code);
  } catch (const capture::FakeError& error) {
    leave(capture, code, error, segments != nullptr);
    throw;
  } catch (const shapes::ShapeError& error) {
    leave(capture, code, error, segments != nullptr);
    throw;
  } catch (const RankAborted&) {
    throw;
  } catch (...) {
    make_real(capture, true);
    throw;
  }
  const bool keeps_input = make_real(capture, false);
  std::erase_if(made.kept_results, [](const auto& result) { return !result.first.lock().defined(); });
  if (made.module && (keeps_input || !made.kept_results.empty())) {
    made.refusal = capture::kept_tensor({}).what();
    made.keeps_tensors = true;
  }
  return made;
}

}  // namespace rehearse::compiler
