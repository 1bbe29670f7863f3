// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <optional>

#include <torch/custom_class.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/exec/call_site_scope.h>

#include "graph/run/call/communication.h"
#include "graph/run/steps/steps.h"

namespace rehearse::graph {
namespace {

class NamedStep : public Step {
 public:
  NamedStep(std::shared_ptr<const Origin> origin, std::unique_ptr<Step> step)
      : origin_(std::move(origin)), step_(std::move(step)) {}

  c10::IValue run(const ValueOf& value_of) const override {
    const exec::CallSiteScope site(origin_->asked_from);
    std::optional<comm::LabelScope> label;
    if (origin_->label) label.emplace(*origin_->label);
    return step_->run(value_of);
  }

 private:
  const std::shared_ptr<const Origin> origin_;
  const std::unique_ptr<Step> step_;
};

class WorkStep : public Step {
 public:
  explicit WorkStep(const Node& node) : node_(node), waits_(node.target() == "wait") {
    if (node.args().size() == 2 && node.args()[1].is<std::int64_t>()) {
      timeout_ = std::chrono::milliseconds(node.args()[1].as<std::int64_t>());
    } else if (node.args().size() != 1) {
      throw GraphError(node.name(), "args", "must be a Work, and for wait() a number of milliseconds");
    }
  }

  c10::IValue run(const ValueOf& value_of) const override {
    const c10::IValue value = to_ivalue(node_.args()[0], value_of, node_, "args[0]");
    if (!value.isCustomClass()) throw GraphError(node_.name(), "args[0]", "must be a Work, and is " + value.tagKind());
    const auto work = value.toCustomClass<c10d::Work>();
    if (waits_) return work->wait(timeout_);
    work->synchronize();
    return {};
  }

 private:
  const Node& node_;
  const bool waits_;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace

std::unique_ptr<Step> in_the_name_of(const Node& node, std::unique_ptr<Step> step) {
  const auto& origin = node.meta().origin;
  if (!origin || (origin->asked_from.empty() && !origin->label)) return step;
  return std::make_unique<NamedStep>(origin, std::move(step));
}

std::unique_ptr<Step> make_work_step(const Node& node) {
  return is_method_of_work(node) ? std::make_unique<WorkStep>(node) : nullptr;
}

}  // namespace rehearse::graph
