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

// Captures what code does with tensors as a graph, above autograd: composite operators stay whole, and grad mode and
// autocast regions become nodes. Nothing is computed: the code sees fakes in place of its inputs, and its parameters
// stand for fakes of their own; no real tensor changes, nor its version, and no hook runs.
//
//   ForwardCapture capture(shapes, named_tensors);
//   at::Tensor x = capture.add_tensor("x", real_x, {batch, 10});
//   at::Tensor y;
//   capture.run([&] { y = net->forward(x); });
//   CapturedGraph graph = capture.finish({y});
//
// Belongs to the fiber that runs it; captures in several fibers may be under way at once. Not thread-safe.
// Errors: CaptureError and those derived from it (errors.h) for what no graph can hold, with the user's line;
// what the code throws, and what operators throw for wrong arguments, leaves as it is.
class ForwardCapture {
 public:
  ForwardCapture(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);
  ~ForwardCapture();
  ForwardCapture(const ForwardCapture&) = delete;
  ForwardCapture& operator=(const ForwardCapture&) = delete;

  // The fake that stands for tensor #0, #1, ... of the call's inputs. `sizes`: those of `real`, where some may be
  // symbols of the shape environment. A tensor that was added before, or is a parameter, gives the same fake again.
  at::Tensor add_tensor(std::string source, const at::Tensor& real, std::vector<c10::SymInt> sizes);

  // Integer #0, #1, ... of the call's inputs; `value` is a symbol of the shape environment, or a number.
  c10::SymInt add_int(std::string source, c10::SymInt value);

  // Makes reads of data and eager regions end a segment (segments.h), instead of the capture, and has it run what was
  // recorded up to where no graph can hold what follows. Before run().
  void set_listener(SegmentListener& listener);

  // Runs the code under the tracer. May be called once.
  void run(const std::function<void()>& user_code);

  // The graph whose results are `outputs`: tensors (fakes, or real ones that are inputs or parameters), symbolic and
  // plain numbers, none, and lists of these. Fakes that are alive besides them are an error.
  CapturedGraph finish(const std::vector<c10::IValue>& outputs);

  // Behind the code, also where it has thrown: has `run` run what was recorded since the last read or region, and ends
  // the capture. False: the code did what cannot be told from what was recorded, and nothing has run.
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);

  // Behind the code: the line that made a tensor which the code keeps beside these outputs. Null: it keeps none.
  const exec::CallSite* find_kept(const std::vector<c10::IValue>& outputs) const;

  // The last that is asked, for when the capture is gone (left_fakes.h). Where it has failed, with what it made:
  // `find_value` knows values of segments that have run, and is empty where that cannot be told.
  LeftFakes left(bool has_failed, const std::function<c10::IValue(std::size_t number)>& find_value);

  // Whether the capture has ended before the code: the rest of that ran, or will run, on real tensors. Then there is no
  // graph, real_value() is what an output of the code stands for, and what it has kept elsewhere has become real.
  bool ended() const noexcept;
  // Why, where it was on_refusal() that ended it.
  const std::string& refusal() const noexcept;
  c10::IValue real_value(const c10::IValue& value) const;

 private:
  std::unique_ptr<Tracer> tracer_;
};

// The integer in a tensor of one element, and those in a tensor of one dimension. In a capture: new unbacked symbols of
// its graph, without an end to it; they may be negative. Elsewhere: the values.
c10::SymInt sym_item(const at::Tensor& tensor);
std::vector<c10::SymInt> sym_tolist(const at::Tensor& tensor);

}  // namespace rehearse::capture

namespace rehearse {
using capture::sym_item;
using capture::sym_tolist;
}  // namespace rehearse
