// SPDX-License-Identifier: BSD-3-Clause
#include "checks/watch/rank_watch.h"

#include <algorithm>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/checks/non_finite.h>
#include <rehearse_internal/checks/unwatched.h>

#include "checks/values/tensor_difference.h"
#include "checks/watch/operator_text.h"

namespace rehearse::checks {
namespace {

constexpr std::size_t kWritesMost = 100'000;  // per rank and check; bounds the memory

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const c10::IValue& each : value.toListRef()) for_each_tensor(each, visit);
  }
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// These operators allocate or rebind memory and write nothing into it.
bool leaves_memory_as_it_is(const c10::FunctionSchema& schema) {
  constexpr std::string_view kNames[] = {"aten::empty", "aten::new_empty", "aten::resize", "aten::set_"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return std::string_view(schema.name()).starts_with(name); });
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  if (!a.has_storage() || !b.has_storage() || !a.storage().is_alias_of(b.storage())) return false;
  const auto* const a_begin = static_cast<const char*>(a.const_data_ptr());
  const auto* const b_begin = static_cast<const char*>(b.const_data_ptr());
  return a_begin < b_begin + b.nbytes() && b_begin < a_begin + a.nbytes();
}

std::string backward_text() {
  const auto node = torch::autograd::get_current_node();
  return node ? "in the backward of " + node->name() : "";
}

}  // namespace

void RankWatch::before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const Unwatched own;
  call_ = call_of(op.schema(), arguments);
  draws_.before(op, arguments);
}

WatchedCall RankWatch::call_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) const {
  WatchedCall call;
  call.schema = &schema;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = schema.arguments()[i];
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      const bool written = is_written(argument);
      call.inputs.push_back({argument.name(), tensor, written, origins_.of(tensor), 0});
      call.writes_watched |= written && is_watched(tensor);
    });
  }
  if (!call.writes_watched) return call;
  for (auto& input : call.inputs) {
    if (!input.is_written) input.hash = hash_of(input.tensor);
  }
  call.numbers = numbers_of(schema, arguments);
  return call;
}

void RankWatch::after(c10::ArrayRef<c10::IValue> results) {
  const Unwatched own;
  const auto call = *std::exchange(call_, std::nullopt);
  std::vector<at::Tensor> outputs;
  for (const auto& result : results) for_each_tensor(result, [&](const at::Tensor& each) { outputs.push_back(each); });
  for (const auto& input : call.inputs) {
    if (input.is_written) outputs.push_back(input.tensor);
  }
  draws_.after();
  if (!leaves_memory_as_it_is(*call.schema)) look_for_non_finite(call, outputs);
  if (!call.writes_watched) return;
  for (const auto& input : call.inputs) {
    if (input.is_written) log_writes(call, input);
  }
}

void RankWatch::look_for_non_finite(const WatchedCall& call, const std::vector<at::Tensor>& outputs) {
  for (const auto& output : outputs) {
    if (has_non_finite(output)) {
      origins_.set(output, origin_of(call, output));
    } else {
      origins_.clear(output);
    }
  }
}

OriginPtr RankWatch::origin_of(const WatchedCall& call, const at::Tensor& output) const {
  const auto kind = non_finite_kind(output);
  OriginPtr before;  // of an input of another kind, such as an Inf from which a NaN came
  for (const auto& input : call.inputs) {
    if (input.origin && input.origin->kind == kind) return input.origin;
    if (input.origin && !before) before = input.origin;
  }
  Origin origin;
  origin.rank = rank_;
  origin.kind = kind;
  origin.made_by = call.schema->name();
  origin.where = exec::CallSite::capture();
  origin.behind = backward_text();
  const auto label = label_();
  if (!label.empty()) origin.behind += fmt::format("{}under label \"{}\"", origin.behind.empty() ? "" : ", ", label);
  if (before)
    origin.behind += fmt::format("{}of the {} {}", origin.behind.empty() ? "" : ", ", before->kind, before->text());
  for (const auto& input : call.inputs) {
    if (before || input.is_written || !has_non_finite(input.tensor)) continue;
    origin.made_by = fmt::format("unknown code that wrote argument \"{}\" of {} (no operator that was seen)",
                                 input.argument, call.schema->name());
    break;
  }
  return std::make_shared<const Origin>(std::move(origin));
}

bool RankWatch::is_watched(const at::Tensor& tensor) const {
  return std::ranges::any_of(logs_, [&](const auto& log) {
    return std::ranges::any_of(log.second.tensors, [&](const NamedTensor& each) {
      return each.tensor.defined() && overlap(each.tensor, tensor);
    });
  });
}

void RankWatch::log_writes(const WatchedCall& call, const WatchedCall::Input& written) {
  for (auto& [name, log] : logs_) {
    for (const auto& each : log.tensors) {
      if (!each.tensor.defined() || !overlap(each.tensor, written.tensor) || log.writes.size() >= kWritesMost) continue;
      Write write{each.name, call.schema->name(), exec::CallSite::capture(), hash_of(each.tensor), {}, call.numbers};
      const auto gradient = each.tensor.is_leaf() ? each.tensor.grad() : at::Tensor();
      for (const auto& input : call.inputs) {
        if (input.is_written) continue;
        const bool is_gradient = gradient.defined() && overlap(gradient, input.tensor);
        write.operands.push_back({input.argument, is_gradient, input.hash});
      }
      if (gradient.defined()) write.gradient = hash_of(gradient);
      log.writes.push_back(std::move(write));
    }
  }
}

std::vector<Write> RankWatch::take_writes(const std::string& name, const ModelState& state) {
  auto& log = logs_[name];
  log.tensors = state.tensors();
  return std::exchange(log.writes, {});
}

}  // namespace rehearse::checks
