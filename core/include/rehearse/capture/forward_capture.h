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
// autocast regions become nodes. Computes nothing: the code gets fakes in place of its inputs, and operators treat its
// parameters as fakes. No real tensor changes, neither its data nor its version, and no hook of a real tensor runs.
//
//   ForwardCapture capture(shapes, named_tensors);
//   at::Tensor x = capture.add_tensor("x", real_x, {batch, 10});
//   at::Tensor y;
//   capture.run([&] { y = net->forward(x); });
//   CapturedGraph graph = capture.finish({y});
//
// Belongs to the fiber that runs it. Several fibers may capture at the same time. Not thread-safe.
// Errors: capture::FakeError and its derived classes, with the user's line, for what no graph can hold; exceptions of
// the code, and of operators for wrong arguments, pass through unchanged.
class ForwardCapture {
 public:
  ForwardCapture(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module);
  ~ForwardCapture();
  ForwardCapture(const ForwardCapture&) = delete;
  ForwardCapture& operator=(const ForwardCapture&) = delete;

  // Returns the fake for tensor #0, #1, ... of the call's inputs. `sizes`: the sizes of `real`, some of them symbols of
  // the shape environment. Returns the same fake again for a tensor that was added before or is a parameter.
  at::Tensor add_tensor(std::string source, const at::Tensor& real, std::vector<c10::SymInt> sizes);

  // Adds integer #0, #1, ... of the call's inputs. `value`: a symbol of the shape environment, or a number.
  c10::SymInt add_int(std::string source, c10::SymInt value);

  // Enables segments (segments.h): a read of data, an eager region or code that no graph can hold does not end the
  // capture, but ends a segment, which the listener runs. Call it before run().
  void set_listener(SegmentListener& listener);

  // Runs the code under the tracer. Call it once.
  void run(const std::function<void()>& user_code);

  // Returns the graph whose results are `outputs`: tensors (fakes, or real ones that are inputs or parameters),
  // symbolic and plain numbers, None, and lists of these. Throws if the code keeps any other fake alive.
  CapturedGraph finish(const std::vector<c10::IValue>& outputs);

  // Call it after the code, also if the code has thrown: `run` runs what was recorded since the last read or region,
  // and the capture ends. Returns false, without running anything, if the recording does not say what the code did.
  bool end(const std::function<SegmentAnswer(SegmentEnd)>& run);

  // Call it after the code: returns the line that made a tensor which the code keeps beside these outputs, or null.
  const exec::CallSite* find_kept(const std::vector<c10::IValue>& outputs) const;

  // Call it last, before the capture is destroyed: returns the fakes that the code may still hold (left_fakes.h), with
  // the values of inputs. `has_failed`: also returns fakes that the code made. `find_value` returns values of segments
  // that have run; it is empty if these are unknown.
  LeftFakes left(bool has_failed, const std::function<c10::IValue(std::size_t number)>& find_value);

  // Whether the capture ended before the code did: the rest of the code ran, or will run, on real tensors. Then there
  // is no graph, real_value() maps an output of the code to its value, and fakes that the code keeps elsewhere have
  // become real.
  bool ended() const noexcept;
  // Why it ended, if on_refusal() ended it.
  const std::string& refusal() const noexcept;
  c10::IValue real_value(const c10::IValue& value) const;

 private:
  std::unique_ptr<Tracer> tracer_;
};

// sym_item() reads the integer in a tensor of one element, sym_tolist() those in a tensor of one dimension. In a
// capture they return new unbacked symbols, which may be negative, and the graph goes on. Elsewhere they return the
// values.
c10::SymInt sym_item(const at::Tensor& tensor);
std::vector<c10::SymInt> sym_tolist(const at::Tensor& tensor);

}  // namespace rehearse::capture

namespace rehearse {
using capture::sym_item;
using capture::sym_tolist;
}  // namespace rehearse
