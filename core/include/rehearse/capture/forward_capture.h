// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/SymInt.h>

#include <rehearse/capture/captured_graph.h>

namespace rehearse::capture {

class Tracer;
struct LeftFakes;
struct Segment;
struct RegionState;
struct SegmentAnswer;
struct SegmentEnd;
struct SegmentListener;

// A parameter or buffer of the captured module, with its qualified name ("net.0.weight").
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
  bool ddp_ignored = false;
};

// Captures what code does with tensors as a graph, above autograd: composite operators stay whole, and changes of grad
// mode and autocast become nodes. Operators compute nothing, because the code gets fakes in place of its inputs, and
// operators use fakes in place of parameters. Operators change no real tensor, neither its data nor its version, and no
// hook of a real tensor runs. With a listener (set_listener()), only segments, reads, eager regions and code after the
// end of the capture run for real.
//
//   ForwardCapture capture(shapes, named_tensors);
//   at::Tensor x = capture.add_tensor("x", real_x, {batch, 10});
//   at::Tensor y;
//   capture.run([&] { y = net->forward(x); });
//   CapturedGraph graph = capture.finish({y});
//
// Belongs to the fiber that runs it. Several fibers may capture at the same time. Not thread-safe.
// Errors: for code that no graph can hold, capture::FakeError, shapes::ShapeError and their derived classes, with the
// user's line if it is known. If the code catches such an error, run() throws it all the same. Other exceptions of the
// code, and of operators for wrong arguments, pass through unchanged.
class ForwardCapture {
 public:
  ForwardCapture(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);
  ~ForwardCapture();
  ForwardCapture(const ForwardCapture&) = delete;
  ForwardCapture& operator=(const ForwardCapture&) = delete;

  // Adds tensor #0, #1, ... of the call's inputs and returns its fake. `sizes`: the sizes of `real`; some may be
  // symbols of the shape environment. If the tensor was added before, returns the same fake again. If it is a parameter
  // or buffer, returns the fake that operators use in its place.
  at::Tensor add_tensor(std::string source, const at::Tensor& real, std::vector<c10::SymInt> sizes);

  // Adds integer #0, #1, ... of the call's inputs. `value`: a symbol of the shape environment, or a number. Returns
  // `value`.
  c10::SymInt add_int(std::string source, c10::SymInt value);

  // Enables segments (segments.h). Without a listener, a read of data, an eager region and code that no graph can hold
  // are errors. With one, they end a segment, which the listener runs; its answer decides whether the capture goes on.
  // Call it before run().
  void set_listener(SegmentListener& listener);

  // Runs the code under the tracer. Call it once.
  void run(const std::function<void()>& user_code);

  // Returns the graph whose results are `outputs`: tensors (fakes or real ones), symbolic and plain numbers, None, and
  // lists of these. Throws NotCapturable if the code keeps another fake that it made, or a c10d::Work.
  CapturedGraph finish(const std::vector<c10::IValue>& outputs);

  // Call it after the code, even if the code has thrown. `run` must run what was recorded since the last read or
  // region; the capture ends if the answer has SegmentAnswer::value_of. Does not call `run` if the capture was refused
  // or has ended, or if running the recording would not reproduce the tensors that the code holds. (For example, an
  // autograd function of the code made a tensor.) Returns whether this call has ended the capture.
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);

  // Call it after the code. Returns the line that made a tensor which the code keeps although it is none of `outputs`;
  // null if there is no such tensor.
  const exec::CallSite* find_kept(const std::vector<c10::IValue>& outputs) const;

  // Call it last, before the capture is destroyed. Returns the fakes that the code may still hold (left_fakes.h): those
  // of inputs and, if the capture has ended, those that did not become real. If `has_failed` and the capture has not
  // ended, also returns those that the code made. `find_value` returns values of segments that have run; it is empty if
  // these are unknown.
  LeftFakes left(bool has_failed, const std::function<c10::IValue(std::size_t number)>& find_value);

  // True if a listener's answer or end() has ended the capture. Whatever the code does after that runs on real tensors.
  // The capture then has no graph, and real_value() maps an output of the code to its value. Other fakes that the code
  // keeps have become real, except those that left() returns.
  bool ended() const noexcept;
  // The eager regions that have run and have a state, without those that change it themselves. The graph holds only for
  // these states.
  const std::vector<RegionState>& regions() const noexcept;
  // The error text of the refusal, if the answer of on_refusal() has ended the capture; else empty.
  const std::string& refusal() const noexcept;
  c10::IValue real_value(const c10::IValue& value) const;

 private:
  std::unique_ptr<Tracer> tracer_;
};

// sym_item() reads the integer in a tensor of one element, sym_tolist() those in a tensor of one dimension. In a
// capture they return new unbacked symbols, which may be negative, and end no segment. Elsewhere they return the
// values.
c10::SymInt sym_item(const at::Tensor& tensor);
std::vector<c10::SymInt> sym_tolist(const at::Tensor& tensor);

}  // namespace rehearse::capture

namespace rehearse {
using capture::sym_item;
using capture::sym_tolist;
}  // namespace rehearse
