// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/exec/call_site.h>
#include <rehearse/graph/graph_module.h>

// Captures that go on after a read of data or an eager region. The graph before the read or the region is a segment,
// which runs at once. The tensors that the code then holds become inputs of the next segment. The code keeps the same
// fakes.
namespace rehearse::capture {

// One stretch of a capture. Its results, and those of eager regions, are values of the capture, numbered from 0 in the
// order in which they are computed.
struct Segment {
  // Either an input from outside of the capture, or the number of a value.
  using Source = std::variant<GraphInput, std::size_t>;

  std::shared_ptr<graph::GraphModule> module;  // its output is a list
  std::vector<Source> sources;                 // one for each placeholder, in order
  std::size_t results = 0;                     // how many values it adds; they get the next numbers
  // True if several inputs share memory and an operator of the segment writes to one of its arguments. Then the result
  // is sure to be right only if the segment runs operator by operator.
  bool writes_to_alias = false;
};

// A fake that the code still holds.
struct LiveValue {
  std::uint64_t fake_id;
  Segment::Source source;
};

// A number that depends on data.
struct LiveNumber {
  std::string symbol;
  Segment::Source source;
};

// The end of a segment. At a read of data, `read` is a graph of one operator whose result the code wants as a number or
// Boolean. At an eager region, `read` has no graph, and its sources are the region's tensors. At a refusal, `read` is
// empty.
struct SegmentEnd {
  Segment before;
  Segment read;
  std::vector<LiveValue> alive;
  std::vector<LiveNumber> numbers;
  exec::CallSite where;
  bool grad_enabled = true;  // for an eager region: grad mode at its call
};

// The result of an eager region.
struct RegionResult {
  virtual ~RegionResult() = default;
  virtual std::vector<at::Tensor> tensors() = 0;  // in order; some may be undefined
  virtual void replace(const std::vector<at::Tensor>& tensors) = 0;
  virtual std::string constants() = 0;  // everything else, as text to compare
  // True if tensors() and constants() do not tell everything. The rest of the call then runs eagerly.
  virtual bool must_end() const { return false; }
};

// Code that runs eagerly, on real tensors, between two segments.
struct EagerRegion {
  virtual ~EagerRegion() = default;
  virtual std::string title() const { return "eager_region()"; }  // for refusals: "<title> is called in ..."
  virtual std::string identity() const = 0;                       // equal for the same code with the same numbers
  virtual std::shared_ptr<RegionResult> run(std::vector<at::Tensor> tensors) const = 0;
  // The objects to which it refers. They must outlive the captured function.
  virtual std::vector<const void*> references() const { return {}; }
  // Numbers for the state of what it runs, besides its arguments: the modes of a script module, and all attributes. A
  // graph with the region holds only for this state. 0: it has none.
  using State = std::array<std::uint64_t, 2>;
  virtual State state() const { return {}; }
};

// A region, and EagerRegion::state() where it ran; 0 in place of a number that the region itself has changed.
struct RegionState {
  std::shared_ptr<const EagerRegion> region;
  EagerRegion::State state{};

  bool holds() const;
};

// The listener's answer after it has run the segment that ended, and the read or the region.
struct SegmentAnswer {
  std::vector<c10::IValue> values;            // the number or Boolean that was read, or the region's real tensors
  std::shared_ptr<RegionResult> result = {};  // for a region
  // If set, the capture ends here, and the rest of the code runs operator by operator on real values. The function
  // returns the value of a source.
  std::function<c10::IValue(const Segment::Source&)> value_of = {};
};

// Runs segments. The tracer calls it in the fiber of the capture, with the dispatch keys and modes of the code around
// the capture. If it throws, the user's code gets the exception, and the capture fails.
struct SegmentListener {
  virtual ~SegmentListener() = default;
  virtual SegmentAnswer on_read(SegmentEnd end) = 0;
  virtual SegmentAnswer on_region(SegmentEnd end, const std::shared_ptr<const EagerRegion>& region) = 0;
  // The capture cannot go on because of `why`. Runs what was recorded and returns an answer that ends the capture. If
  // the answer does not end the capture, the user's code gets the refusal as an exception.
  virtual SegmentAnswer on_refusal(SegmentEnd end, const std::string& why) = 0;
  // True if the object is a local object of the captured function, a copy of an argument, or a member of the function
  // object. Later calls, which run the region again, have others.
  virtual bool is_of_this_call([[maybe_unused]] const void* object) const { return false; }
  // True if the code is compared with one whole graph. Code that such a graph can hold then does not end a segment.
  virtual bool expects_whole() const { return false; }
};

// Ends the segment, has the listener run the region, and returns the result with fakes in it (with real tensors if the
// listener's answer ends the capture). If the calling fiber captures nothing, or its capture has ended, runs the region
// at once. Throws NotCapturable in a hook, in a backward, if the capture has no listener, and if the captured code has
// changed autocast, inference mode, the default dtype or the state of a real tensor (whether it requires grad, its
// gradient, its hooks).
std::shared_ptr<RegionResult> run_region(const std::shared_ptr<const EagerRegion>& region,
                                         std::vector<at::Tensor> tensors);

}  // namespace rehearse::capture
