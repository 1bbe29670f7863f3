// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

// A capture that goes on behind a read of data. What was recorded up to the read is a graph by itself, a segment: it is
// run at once, and what the code holds then are inputs of the next segment, by the same fakes.
namespace rehearse::capture {

// One stretch of a capture. Its results are values of the capture, numbered through all segments from 0 on.
struct Segment {
  using Source = std::variant<GraphInput, std::size_t>;  // from outside of the capture, or the value of that number

  std::shared_ptr<graph::GraphModule> module;  // its output is a list
  std::vector<Source> sources;                 // of its placeholders, in order
  std::size_t results = 0;                     // get the next numbers
  // It writes to one of several inputs that share memory: only run operator by operator it is surely right.
  bool writes_to_alias = false;
};

// A fake that the code still holds, and its value.
struct LiveValue {
  std::uint64_t fake_id;
  Segment::Source source;
};

// A number that only data tells, by its symbol.
struct LiveNumber {
  std::string symbol;
  Segment::Source source;
};

// Where a segment ends. `read`: a graph of one operator, whose result the code wants as a number; at an eager region no
// graph, and the sources of the region's tensors.
struct SegmentEnd {
  Segment before;
  Segment read;
  std::vector<LiveValue> alive;
  std::vector<LiveNumber> numbers;
  exec::CallSite where;
  bool grad_enabled = true;  // where an eager region is called
};

// What an eager region gave: tensors, and other things beside them.
struct RegionResult {
  virtual ~RegionResult() = default;
  virtual std::vector<at::Tensor> tensors() = 0;  // in order; may be undefined
  virtual void replace(const std::vector<at::Tensor>& tensors) = 0;
  virtual std::string constants() = 0;  // all else, for comparison
};

// Code that runs as it is, on real tensors, between two segments.
struct EagerRegion {
  virtual ~EagerRegion() = default;
  virtual std::string identity() const = 0;  // equal for the same code and the same numbers
  virtual std::shared_ptr<RegionResult> run(std::vector<at::Tensor> tensors) const = 0;
};

// What has run at a segment's end.
struct SegmentAnswer {
  std::vector<c10::IValue> values;            // the number that was read, or the region's real tensors
  std::shared_ptr<RegionResult> result = {};  // of a region
  // Not empty: the capture ends here, and the rest of the code runs operator by operator on the values of the sources.
  std::function<c10::IValue(const Segment::Source&)> value_of = {};
};

// Who runs segments. Called in the fiber of the capture, with dispatch keys and modes put back to those of the call.
// What it throws goes to the user's code.
struct SegmentListener {
  virtual ~SegmentListener() = default;
  virtual SegmentAnswer on_read(SegmentEnd end) = 0;
  virtual SegmentAnswer on_region(SegmentEnd end, const std::shared_ptr<const EagerRegion>& region) = 0;
  // The capture cannot go on; `why`. What was recorded is run, and the answer ends the capture. One that does not: the
  // code is not to be helped, and gets the refusal as an exception.
  virtual SegmentAnswer on_refusal(SegmentEnd end, const std::string& why) = 0;
};

// Ends the segment, has the listener run the region, and gives the result with fakes in it; runs it at once where the
// calling fiber captures nothing. Throws NotCapturable where a capture has no listener.
std::shared_ptr<RegionResult> run_region(const std::shared_ptr<const EagerRegion>& region,
                                         std::vector<at::Tensor> tensors);

}  // namespace rehearse::capture
