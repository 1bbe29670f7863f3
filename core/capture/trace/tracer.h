// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/capture/segments.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/left_fakes.h>

#include "capture/fake/capture_thread.h"
#include "capture/graph/call_arguments.h"
#include "capture/graph/expression_nodes.h"
#include "capture/trace/argument_gradient.h"
#include "capture/trace/caller/call_modes.h"
#include "capture/trace/caller/default_generator.h"
#include "capture/trace/captured_work.h"
#include "capture/trace/eager_rest.h"
#include "capture/trace/operators/treatment.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/inputs.h"
#include "capture/trace/recording/mode_nodes.h"
#include "capture/trace/recording/segment_cutter.h"
#include "capture/trace/recording/values.h"
#include "capture/trace/recording/view_families.h"

namespace rehearse::capture {

// Makes nodes of the operators that come to the key DeferredInit, above autograd, and answers them with fakes that are
// computed below it.
class Tracer {
 public:
  Tracer(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);

  // The calling fiber's; null when nothing is captured in it.
  static Tracer* current() noexcept;

  Inputs& inputs() noexcept { return inputs_; }
  FakeMode& mode() noexcept { return mode_; }

  // Reads and eager regions end a segment, which the listener runs; without one they are errors.
  void set_listener(SegmentListener* listener) noexcept { listener_ = listener; }
  std::shared_ptr<RegionResult> end_at_region(const std::shared_ptr<const EagerRegion>& region,
                                              const std::vector<at::Tensor>& tensors);
  // Null while the capture goes on.
  const EagerRest* rest() const noexcept { return rest_.get(); }
  // No graph can hold what the code does now: the listener runs what was recorded, and the rest of the code runs as it
  // is. False: there is no listener, or autograd has seen fakes; the code is to get the refusal.
  bool go_on_eagerly(const std::exception& refusal);
  // The code cannot even run as it is: it has got something else than eager mode would have given it.
  [[noreturn]] void end_with(const NotCapturable& refusal);
  const std::string& ended_by() const noexcept { return ended_by_; }
  // Whether a read or an eager region has ended a segment, so that the code may hold what a compiled graph gave.
  bool is_behind_cut() const noexcept { return segments_.values() != 0; }

  void run(const std::function<void()>& user_code);
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);
  const exec::CallSite* find_kept(const std::vector<c10::IValue>& outputs) const;
  LeftFakes left(bool has_failed, const FindValue& find_value);
  CapturedGraph finish(const std::vector<c10::IValue>& outputs);

  // The code is at work, neither an operator of it nor what runs between two segments.
  bool is_in_user_code() const noexcept { return !mode_.thread()->in_operator() && !rest_; }
  // Keeps the first refusal. It fails the capture at its end, even if the code catches the exception.
  void note_refusal(std::exception_ptr refusal);

  // One operator; its arguments are on the stack, its results will be.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack);

  // Of a Work that a recorded call gave.
  bool wait(CapturedWork& work, std::chrono::milliseconds timeout);
  void synchronize(CapturedWork& work);

  // An integer of data as a symbol that the graph brings into being.
  c10::SymInt read_symbolically(const at::Tensor& tensor);

 private:
  // While it lives, the fiber captures nothing.
  class Outside {
   public:
    Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    ~Outside();

   private:
    Tracer* const tracer_;
    const FakeMode::Off no_mode_;
    const c10::impl::ForceDispatchKeyGuard keys_;
  };
  // While it lives, an operator is at work, or what this class does itself.
  class InOperator {
   public:
    explicit InOperator(Tracer& tracer)
        : flag_(tracer.mode_.thread()->in_operator()), before_(std::exchange(flag_, true)) {}
    ~InOperator() { flag_ = before_; }
    InOperator(const InOperator&) = delete;
    InOperator& operator=(const InOperator&) = delete;

   private:
    bool& flag_;
    const bool before_;
  };
  // As Outside, with the modes of the code around the capture.
  struct Suspension {
    explicit Suspension(const Tracer& tracer) : generator(tracer.generator_.get()), modes(*tracer.call_modes_) {}
    const DefaultGenerator::Outside generator;
    const Outside outside;
    const CallModes::Scope modes;
  };

  void run_code(const std::function<void()>& user_code);
  // The exception that is being handled; whether it is one.
  bool note_if_refusal();
  bool go_on_after(const std::exception& refusal);
  void call_in_operator(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  void call_in_rest(const c10::OperatorHandle& op, torch::jit::Stack& arguments);
  // Puts the modes of the call back, and asks.
  SegmentAnswer ask(const std::function<SegmentAnswer()>& listener);
  std::optional<SegmentEnd> end_for_good();

  void record(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  bool record_parts(const c10::OperatorHandle& op, torch::jit::Stack& arguments);
  void infer(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void infer_opaque(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  std::optional<bool> answer_equal(const torch::jit::Stack& arguments);
  c10::IValue read(const c10::OperatorHandle& op, const Treatment& treatment, const torch::jit::Stack& arguments);
  SegmentEnd end_segment(std::vector<graph::Node*> used, const graph::Node* end);
  void bind_sizes();
  std::vector<std::pair<std::string, const graph::Node*>> nodes_of_numbers();
  void note_memory_of_inputs();
  std::vector<at::Tensor> fakes_of_region(const std::vector<at::Tensor>& values, graph::Node& region);
  struct Held {  // what the code holds where the capture may end
    std::vector<LiveValue> tensors;
    std::vector<LiveNumber> numbers;
  };
  void take_answer(const SegmentAnswer& answer, const Held& held);
  void make_real(const std::vector<LiveValue>& alive, const EagerRest::ValueOf& value_of);

  // Real tensors replaced by the fakes that stand for them.
  c10::IValue with_fakes(const c10::IValue& value);
  at::Tensor fake_of(const at::Tensor& tensor);
  graph::Node& node_of(const at::Tensor& tensor);
  graph::Node& node_of_symbol(const std::string& symbol);

  // Notes what a recorded operator gave, and returns what the user gets for it.
  c10::IValue note_result(const c10::IValue& result, graph::Node& node, std::vector<std::int64_t> path,
                          const torch::jit::Stack& arguments, const Treatment& treatment);
  at::Tensor note_tensor(const at::Tensor& fake, graph::Node& node, std::vector<std::int64_t> path,
                         const torch::jit::Stack& arguments, const Treatment& treatment);
  void note_symbols(const at::Tensor& fake, graph::Node& node, const std::vector<std::int64_t>& path);
  void note_views(const at::Tensor& fake, const torch::jit::Stack& arguments, const Treatment& treatment);
  // What the node has written, and all that autograd takes for views of the same tensor, share their history.
  void note_history(const torch::jit::Stack& arguments, const Treatment& treatment, graph::Node& node);
  void note_owner(const torch::jit::Stack& arguments);

  // The next node communicates.
  void note_communication();
  void communicate(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);
  void note_written(const c10::IValue& value, graph::Node& node, std::vector<std::int64_t> path);
  void call_work(CapturedWork& work, const char* method, graph::List arguments);
  std::vector<graph::Node*> nodes_of_works();

  // Nodes for what was stated of sizes known only at run time since the last call.
  void add_asserts();

  void refuse_first_gradient() const;
  bool is_constant_maker(const Treatment& treatment) const;
  void check_modes() const;
  void check_after_code() const;
  void check_after_code_or_end();
  void check_default_dtype() const;
  graph::Argument output_of(const c10::IValue& value, std::vector<at::Tensor>& tensors);

  struct SymbolSource {  // a size of a value of the graph
    graph::Node* node;
    std::vector<std::int64_t> path;
    std::int64_t dim;
  };

  std::shared_ptr<shapes::ShapeEnv> shapes_;
  const CountedCapture counted_;
  FakeMode mode_;
  GraphBuilder graph_;
  ExpressionNodes symbols_;
  ViewFamilies families_;
  Inputs inputs_;
  Values values_;
  CapturedWorks works_;
  ModeNodes modes_;
  Treatments treatments_;
  SegmentCutter segments_;
  SegmentListener* listener_ = nullptr;
  std::unique_ptr<EagerRest> rest_;
  std::vector<std::pair<WeakTensor, at::Tensor>> stand_ins_;  // what stays fake behind the end, and for what it stands
  std::string ended_by_;                                      // the refusal in whose place the capture has ended
  std::unique_ptr<CallModes> call_modes_;                     // of the code around the capture
  bool was_cut_ = false;
  ArgumentContext context_;
  std::map<std::string, SymbolSource> sizes_;    // unbacked symbols that came as a size
  std::unique_ptr<DefaultGenerator> generator_;  // while the code runs
  std::vector<at::Tensor> made_real_;            // constants made by the code
  std::size_t asserts_added_ = 0;                // of the ShapeEnv's
  std::size_t brought_ = 0;                      // nodes that bring history to a tensor they do not give
  std::vector<Remark> remarks_;
  void* outside_ = nullptr;         // the return address of run()
  std::string label_outside_ = {};  // of what the rank communicates, set by the code around the capture
  std::exception_ptr refusal_;      // the first one
  c10::ScalarType default_dtype_ = c10::ScalarType::Undefined;  // of the code around the capture
  bool inference_mode_ = false;
  bool ran_ = false;
};

}  // namespace rehearse::capture
