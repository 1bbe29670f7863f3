// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::real {

// What the coordinator must know about a tensor to compare and describe a call.
struct TensorFacts {
  at::ScalarType dtype = at::ScalarType::Undefined;
  c10::DeviceType device = c10::kCPU;
  std::int64_t sparse_dims = 0;  // 0: the tensor is dense
  std::vector<std::int64_t> sizes, strides;
};

// A call in a form that can travel to another process, which compares it with the calls of other ranks.
struct CallFacts {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  c10d::ReduceOp::RedOpType reduce_op = c10d::ReduceOp::UNUSED;
  std::vector<int> agreed;  // in the order of comm::kAgreedNumbers
  int peer = -1;
  int tag = 0;
  std::vector<TensorFacts> inputs, outputs;
  std::vector<std::int64_t> input_splits, output_splits;
  std::optional<double> factor;  // for a premultiplied sum
  std::vector<CallFacts> parts;
  std::chrono::milliseconds timeout{0};
  std::optional<std::string> label, payload;
};

CallFacts facts_of(const comm::Operation& call);

// Labels and payloads of calls. Equal texts become one object, which lives as long as the CallTexts.
class CallTexts {
 public:
  const std::string* label(const std::string& text) { return &*labels_.insert(text).first; }
  const comm::PayloadName* payload(const std::string& text);

 private:
  std::set<std::string> labels_;
  std::map<std::string, comm::PayloadName> payloads_;
};

// Rebuilds the call with tensors without data, so that core/comm can compare and describe it. Needs no device.
comm::Operation operation_of(const CallFacts& facts, CallTexts& texts);

template <class Archive>
void fields(Archive& archive, TensorFacts& tensor) {
  archive(tensor.dtype, tensor.device, tensor.sparse_dims, tensor.sizes, tensor.strides);
}

template <class Archive>
void fields(Archive& archive, CallFacts& call) {
  archive(call.type, call.reduce_op, call.agreed, call.peer, call.tag, call.inputs, call.outputs, call.input_splits,
          call.output_splits, call.factor, call.parts, call.timeout, call.label, call.payload);
}

}  // namespace rehearse::real
