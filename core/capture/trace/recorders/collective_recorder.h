// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse/capture/segments.h>

#include "capture/trace/operators/treatment.h"
#include "capture/trace/recorders/caller_state.h"
#include "capture/trace/recording/graph_builder.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

class CollectiveRecorder;
class Tracer;

// The Work that a recorded c10d call returns. Its wait() and synchronize() are recorded. If the capture has ended while
// the code goes on, they call the real Work. Outside of the captured function, they throw NotCapturable. The other
// virtual functions of c10d::Work always throw NotCapturable.
class CapturedWork final : public c10d::Work {
 public:
  // The Work is the value of `call` or, if `is_item`, the second item of that value.
  CapturedWork(const Tracer& tracer, CollectiveRecorder& recorder, graph::Node& call, bool is_item)
      : tracer_(&tracer), recorder_(recorder), call_(call), is_item_(is_item) {}

  const graph::Node& call() const noexcept { return call_; }
  // The node with the Work; created on first use.
  graph::Node& node(GraphBuilder& graph);
  void end_of_capture() noexcept { tracer_ = nullptr; }

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;

  bool isCompleted() override { refuse("isCompleted"); }
  bool isSuccess() const override { refuse("isSuccess"); }
  std::exception_ptr exception() const override { refuse("exception"); }
  int sourceRank() const override { refuse("sourceRank"); }
  std::vector<at::Tensor> result() override { refuse("result"); }
  void blockCurrentStream() override { refuse("blockCurrentStream"); }
  void abort() override { refuse("abort"); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { refuse("getFuture"); }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { refuse("getFutureResult"); }
  float getDuration() const override { refuse("getDuration"); }
  std::uint64_t getSequencenumber() const override { refuse("getSequencenumber"); }

 private:
  CollectiveRecorder& recorder() const;
  [[noreturn]] void refuse(const char* method) const;

  const Tracer* tracer_;  // null: its capture is over
  CollectiveRecorder& recorder_;
  graph::Node& call_;
  const bool is_item_;
  graph::Node* item_ = nullptr;
};

// All works of one capture.
class CapturedWorks {
 public:
  CapturedWorks() = default;
  CapturedWorks(const CapturedWorks&) = delete;
  CapturedWorks& operator=(const CapturedWorks&) = delete;
  ~CapturedWorks();

  c10::intrusive_ptr<c10d::Work> make(const Tracer& tracer, CollectiveRecorder& recorder, graph::Node& call,
                                      bool is_item);
  // The works that the code still holds, in order of their calls.
  std::vector<c10::intrusive_ptr<CapturedWork>> alive() const;
  // Throws NotCapturable if the code still holds a work.
  void check_outlived() const;

  // After the capture has ended: sets the real Work for which `work` stands. Call it once for each work.
  void set_real(const CapturedWork& work, c10::intrusive_ptr<c10d::Work> real);
  // Null during the capture.
  c10d::Work* find_real(const CapturedWork& work) const;

 private:
  std::vector<c10::weak_intrusive_ptr<CapturedWork>> made_;
  std::unordered_map<const CapturedWork*, c10::intrusive_ptr<c10d::Work>> real_;
};

// Records c10d calls and the waits for their works as nodes. Most of the calls write to their first argument and return
// a Work. Nothing is sent during the capture.
class CollectiveRecorder {
 public:
  CollectiveRecorder(const Tracer& tracer, Recording& recording, const CallerState& caller)
      : tracer_(tracer), recording_(recording), caller_(caller) {}

  // Call it before recording a node that communicates. Gives that node the call's stack and label.
  void note_communication();
  void record(const c10::OperatorHandle& op, const Treatment& treatment, torch::jit::Stack& arguments);

  // Records a wait for a Work that a recorded call returned. After the end of the capture, waits for the real Work.
  bool wait(CapturedWork& work, std::chrono::milliseconds timeout);
  void synchronize(CapturedWork& work);

  // Nodes of the works that the code holds. They become values of the segment that ends.
  std::vector<graph::Node*> nodes_of_works();
  // After the end of the capture: gives each work that the code holds its real Work.
  void set_real(const std::function<c10::IValue(const Segment::Source&)>& value_of);
  void check_outlived() const { works_.check_outlived(); }

 private:
  void note_written(const c10::IValue& value, graph::Node& node, std::vector<std::int64_t> path);
  void record_method(CapturedWork& work, const char* method, graph::List arguments);

  const Tracer& tracer_;
  Recording& recording_;
  const CallerState& caller_;
  CapturedWorks works_;
};

}  // namespace rehearse::capture
