// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/grad_mode.h>

#include "graph/ir/targets.h"
#include "graph/run/steps/autocast_scope.h"
#include "graph/run/steps/steps.h"
#include "graph/text/enum_names.h"

namespace rehearse::graph {
namespace {

// torch._C._set_grad_enabled(enabled). The mode holds until the next such node, or until the end of the graph.
class GradModeStep : public Step {
 public:
  explicit GradModeStep(const Node& node)
      : enabled_(node.args().size() == 1 && node.args()[0].is<bool>() && node.args()[0].as<bool>()) {
    if (node.args().size() != 1 || !node.args()[0].is<bool>())
      throw GraphError(node.name(), "args", "must be one bool");
  }
  c10::IValue run(const ValueOf&) const override {
    at::GradMode::set_enabled(enabled_);
    return {};
  }

 private:
  bool enabled_;
};

// The value of a node that enters autocast. Autocast ends with the node that exits it, or when the value is destroyed.
struct AutocastValue : torch::CustomClassHolder {
  std::optional<AutocastScope> scope;
};

// _enter_autocast(device type, dtype, enabled, cache enabled), with the arguments of torch.amp.autocast.
class EnterAutocastStep : public Step {
 public:
  explicit EnterAutocastStep(const Node& node) {
    const auto argument = [&](std::size_t index, const char* name) {
      const Argument* named = node.kwarg(name);
      return index < node.args().size() ? node.args()[index] : named != nullptr ? *named : Argument();
    };
    const Argument device = argument(0, "device_type");
    const auto known = device.is<std::string>() ? device_of(device.as<std::string>()) : std::nullopt;
    if (!known) throw GraphError(node.name(), "args[0]", "must name a type of device");
    device_ = known->type();
    if (const Argument dtype = argument(1, "dtype"); dtype.is<c10::ScalarType>()) dtype_ = dtype.as<c10::ScalarType>();
    if (const Argument enabled = argument(2, "enabled"); enabled.is<bool>()) enabled_ = enabled.as<bool>();
    if (const Argument cache = argument(3, "cache_enabled"); cache.is<bool>()) cache_ = cache.as<bool>();
  }

  c10::IValue run(const ValueOf&) const override {
    auto value = c10::make_intrusive<AutocastValue>();
    value->scope.emplace(device_, enabled_, dtype_, cache_);
    return c10::IValue::make_capsule(std::move(value));
  }

 private:
  c10::DeviceType device_ = c10::DeviceType::CPU;
  std::optional<c10::ScalarType> dtype_;
  bool enabled_ = true;
  std::optional<bool> cache_;
};

class ExitAutocastStep : public Step {
 public:
  explicit ExitAutocastStep(const Node& node) : enter_(node.args().size() == 1 ? node.args()[0].node() : nullptr) {
    if (enter_ == nullptr || enter_->target() != kEnterAutocast) {
      throw GraphError(node.name(), "args[0]", "must be the node that entered the autocast");
    }
  }
  c10::IValue run(const ValueOf& value_of) const override {
    static_cast<AutocastValue&>(*value_of(*enter_).toCapsule()).scope.reset();
    return {};
  }

 private:
  const Node* enter_;
};

}  // namespace

std::unique_ptr<Step> make_mode_step(const Node& node) {
  if (node.target() == kSetGradEnabled) return std::make_unique<GradModeStep>(node);
  if (node.target() == kEnterAutocast) return std::make_unique<EnterAutocastStep>(node);
  if (node.target() == kExitAutocast) return std::make_unique<ExitAutocastStep>(node);
  return nullptr;
}

}  // namespace rehearse::graph
