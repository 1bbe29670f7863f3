// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <rehearse/checks/model_state.h>
#include <rehearse_internal/checks/origins.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "checks/watch/draw_watch.h"
#include "checks/watch/write_log.h"

namespace rehearse::checks {

// An operator call, with the state of its arguments before it ran.
struct WatchedCall {
  const c10::FunctionSchema* schema = nullptr;
  struct Input {
    std::string argument;  // its name in the schema
    at::Tensor tensor;
    bool is_written = false;
    OriginPtr origin;        // as known before the call
    std::uint64_t hash = 0;  // of the values, if the call writes to a watched tensor and not to this tensor
  };
  std::vector<Input> inputs;
  bool writes_watched = false;
  std::string numbers;  // for a call that writes to a watched tensor: its arguments that are numbers
};

// Watches the operators of one rank: where NaN and Inf come from, what writes to tensors whose values a check compares,
// and what draws from the rank's generator.
class RankWatch final : public operators::OperatorWatcher {
 public:
  RankWatch(int rank, Origins& origins, std::function<std::string()> label)
      : rank_(rank), origins_(origins), label_(std::move(label)) {}

  void before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) override;
  void after(c10::ArrayRef<c10::IValue> results) override;

  // From now on, writes to `state` go to the log of that name. Returns the previous contents of the log.
  std::vector<Write> take_writes(const std::string& name, const ModelState& state);

  // See DrawWatch::take().
  std::vector<Drawn> take_draws(const std::string& name) { return draws_.take(name); }

 private:
  struct Log {
    std::vector<NamedTensor> tensors;
    std::vector<Write> writes;
  };

  WatchedCall call_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) const;
  void look_for_non_finite(const WatchedCall& call, const std::vector<at::Tensor>& outputs);
  OriginPtr origin_of(const WatchedCall& call, const at::Tensor& output) const;
  void log_writes(const WatchedCall& call, const WatchedCall::Input& written);
  bool is_watched(const at::Tensor& tensor) const;

  const int rank_;
  Origins& origins_;
  const std::function<std::string()> label_;
  std::optional<WatchedCall> call_;  // the running call; if it throws, its tensors stay alive until the next call
  std::map<std::string, Log> logs_;  // by the check's name
  DrawWatch draws_;
};

}  // namespace rehearse::checks
