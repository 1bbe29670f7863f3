// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/tracer.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/exec/throw_site.h>
#include <rehearse_internal/shapes/errors.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/trace/caller/call_stack.h"
#include "capture/trace/kernels.h"
#include "capture/trace/recording/fold_linear.h"
#include "capture/trace/refusal_watch.h"
#include "capture/trace/shape_remarks.h"
#include "capture/trace/variable_hooks.h"

namespace rehearse::capture {
namespace {

struct Current {
  Tracer* tracer = nullptr;
};
const exec::FiberLocal<Current> current;

class CurrentScope {
 public:
  explicit CurrentScope(Tracer& tracer) : outer_(std::exchange(current->tracer, &tracer)) {}
  ~CurrentScope() { current->tracer = outer_; }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  Tracer* const outer_;
};

// torch::autograd::grad() finds no history on fakes.
void with_refused_gradients(const std::function<void()>& function) {
  const exec::KeepThrowSites keep;
  try {
    function();
  } catch (const c10::Error& error) {
    const std::string_view what = error.what_without_backtrace();
    if (what.find(kNoHistoryMessage) == std::string_view::npos) throw;
    throw NotCapturable(kGradientsInside, kCallOutside, exec::last_throw());
  }
}

}  // namespace

NotCapturable kept_tensor(const exec::CallSite& where) {
  return {"a tensor that was captured outlives the call: it was kept in a member, a capture or a global",
          "Return it as a result, or keep a copy made from the results.", where};
}

Tracer::Outside::Outside()
    : tracer_(std::exchange(capture::current->tracer, nullptr)), keys_([] {
        const c10::DispatchKeySet ours(
            {c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit, c10::DispatchKey::Functionalize});
        c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
        keys.included_ = keys.included_ - ours;
        return keys;
      }()) {}
Tracer::Outside::~Outside() { capture::current->tracer = tracer_; }

Tracer* Tracer::current() noexcept {
  const Current* const found = capture::current.find();
  return found ? found->tracer : nullptr;
}

Tracer::Tracer(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module)
    : shapes_(shapes),
      mode_(std::move(shapes), nullptr, /*is_traced=*/true),
      symbols_([this](const std::string& target,
                      graph::List arguments) -> graph::Node& { return graph_.call(target, std::move(arguments)); },
               [this](const std::string& symbol) -> graph::Node& { return node_of_symbol(symbol); }),
      inputs_(graph_, symbols_, families_, std::move(of_module)),
      values_(graph_, inputs_),
      modes_(graph_),
      segments_(graph_, inputs_, symbols_),
      context_{[this](const at::Tensor& tensor) -> graph::Argument { return node_of(tensor); }, symbols_,
               graph_.site()} {
  mode_.set_ending([this](const std::exception& refusal) { return go_on_eagerly(refusal); });
  register_trace_kernels();
  watch_variable_hooks();
  watch_refusals();
}

void Tracer::run(const std::function<void()>& user_code) {
  if (std::exchange(ran_, true)) throw std::logic_error("ForwardCapture::run() may be called once");
  outside_ = outer_address();
  if (const std::string* label = comm::current_label()) label_outside_ = *label;
  inference_mode_ = c10::InferenceMode::is_enabled();
  call_modes_ = std::make_unique<CallModes>();
  const CurrentScope scope(*this);
  const FakeMode::Scope fakes(mode_);
  const c10::impl::IncludeDispatchKeyGuard trace(c10::DispatchKey::DeferredInit);
  modes_.begin();
  run_code(user_code);
  if (!rest_) modes_.sync();
}

void Tracer::note_refusal(std::exception_ptr refusal) {
  if (!refusal_) refusal_ = std::move(refusal);
}

// What the code throws after it has caught a refusal is no answer of its own.
void Tracer::run_code(const std::function<void()>& user_code) {
  default_dtype_ = c10::get_default_dtype_as_scalartype();
  generator_ = std::make_unique<DefaultGenerator>([this] { return current() == this && is_in_user_code(); },
                                                  [this](const NotCapturable& why) { return go_on_eagerly(why); });
  const auto put_back = c10::make_scope_exit([this]() noexcept { generator_.reset(); });
  try {
    with_typed_errors([&] { with_refused_gradients(user_code); });
    if (!rest_ && !refusal_) check_after_code_or_end();
  } catch (const RankAborted&) {
    throw;
  } catch (...) {
    if (note_if_refusal()) {
      inputs_.states().restore();
      throw;
    }
    if (!refusal_) throw;
  }
  if (!refusal_) return;
  if (!rest_) inputs_.states().restore();
  std::rethrow_exception(refusal_);
}

bool Tracer::note_if_refusal() {
  try {
    throw;
  } catch (const FakeError&) {
    note_refusal(std::current_exception());
  } catch (const shapes::ShapeError&) {
    note_refusal(std::current_exception());
  } catch (...) {
    return false;
  }
  return true;
}

void Tracer::check_modes() const {
  if (torch::autograd::get_current_graph_task_id() != -1) {
    throw NotCapturable(kGradientsInside, kCallOutside, graph_.site());
  }
  if (c10::InferenceMode::is_enabled() != inference_mode_) {
    throw NotCapturable("inference mode changes inside of a captured function",
                        "Use a NoGradGuard there, or turn it on around the call.", graph_.site());
  }
  check_default_dtype();
}

void Tracer::check_after_code() const {
  inputs_.states().check();
  check_default_dtype();
}

// The call may be served by what was recorded, where no other one may.
void Tracer::check_after_code_or_end() {
  const InOperator inside(*this);
  try {
    check_after_code();
  } catch (const NotCapturable& refusal) {
    if (!go_on_eagerly(refusal)) throw;
  }
}

void Tracer::check_default_dtype() const {
  if (c10::get_default_dtype_as_scalartype() == default_dtype_) return;
  throw NotCapturable("the default dtype changes inside of a captured function",
                      "Set it outside, or give factories the dtype.", graph_.site());
}

bool Tracer::end(const std::function<SegmentAnswer(SegmentEnd)>& run) {
  const CurrentScope scope(*this);
  const InOperator inside(*this);
  graph_.set_origin({});
  std::optional<SegmentEnd> end = end_for_good();
  if (!end) return false;
  const Held held{end->alive, end->numbers};
  const SegmentAnswer answer = run(std::move(*end));
  if (answer.value_of) take_answer(answer, held);
  return rest_ != nullptr;
}

const exec::CallSite* Tracer::find_kept(const std::vector<c10::IValue>& outputs) const {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& output : outputs) {
    for_each_tensor(output, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return values_.find_outlived(tensors);
}

LeftFakes Tracer::left(bool has_failed, const FindValue& find_value) {
  LeftFakes left;
  inputs_.for_each([&](const at::Tensor& fake, const at::Tensor& real) { left.of_inputs.emplace_back(fake, real); });
  left.of_inputs.insert(left.of_inputs.end(), stand_ins_.begin(), stand_ins_.end());
  if (!has_failed || rest_ || (was_cut_ && !find_value)) return left;
  const CurrentScope scope(*this);
  graph_.set_origin({});
  modes_.leave();
  std::vector<std::pair<at::Tensor, const graph::Node*>> made;
  for (const at::Tensor& fake : values_.alive()) {
    try {
      made.emplace_back(fake, &values_.node_of(fake));
    } catch (const NotCapturable&) {  // autograd has seen it
    }
  }
  std::set<const graph::Node*> wanted;
  for (const auto& [fake, node] : made) wanted.insert(node);
  const std::size_t known = segments_.values();  // of segments that have run
  left.segment = segments_.take(wanted, nullptr);
  for (const auto& [fake, node] : made) {
    const Segment::Source source = segments_.source_of(*node);
    const auto* const value = std::get_if<std::size_t>(&source);
    if (value && *value >= known) left.made.emplace_back(fake, *value - known);
    if (!value || *value >= known) continue;
    if (const c10::IValue found = find_value(*value); found.isTensor())
      left.of_inputs.emplace_back(fake, found.toTensor());
  }
  return left;
}

CapturedGraph Tracer::finish(const std::vector<c10::IValue>& outputs) {
  mode_.refuse_other_threads();
  const CurrentScope scope(*this);
  add_asserts();
  graph_.set_origin({});
  std::vector<at::Tensor> tensors;
  graph::List results;
  for (const c10::IValue& output : outputs) results.push_back(output_of(output, tensors));
  if (const exec::CallSite* kept = values_.find_outlived(tensors)) throw kept_tensor(*kept);
  works_.check_outlived();
  const graph::Argument result(std::move(results));
  std::shared_ptr<Segment> last;
  if (was_cut_) note_memory_of_inputs();
  if (was_cut_) last = std::make_shared<Segment>(segments_.take_last(result));
  graph_.graph().output(result);
  fold_linear(*graph_.module());
  CapturedGraph captured{graph_.module(), inputs_.placed(), shapes_, std::move(remarks_), std::move(last)};
  add_shape_remarks(*shapes_, captured.remarks);
  return captured;
}

graph::Argument Tracer::output_of(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTuple()) {
    graph::List items;
    for (const c10::IValue& item : value.toTupleRef().elements()) items.push_back(output_of(item, tensors));
    return items;
  }
  if (value.isList()) {
    graph::List items;
    for (const c10::IValue& item : value.toListRef()) items.push_back(output_of(item, tensors));
    return items;
  }
  if (value.isTensor()) tensors.push_back(value.toTensor());
  return to_argument(value, *c10::AnyType::get(), context_);
}

}  // namespace rehearse::capture
