// SPDX-License-Identifier: BSD-3-Clause
#include "compile/cache/stated_guards.h"

#include <stdexcept>
#include <utility>

#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::compiler {

StatedGuards::StatedGuards(std::shared_ptr<shapes::ShapeEnv> shapes) : shapes_(std::move(shapes)) {
  if (shapes_ == nullptr) return;
  guards_ = shapes_->guards().size();
  asserts_ = shapes_->asserts().size();
  unbacked_ = shapes_->unbacked().size();
}

graph::List StatedGuards::added() const {
  graph::List list;
  if (shapes_ == nullptr) return list;
  if (shapes_->asserts().size() != asserts_ || shapes_->unbacked().size() != unbacked_) {
    throw std::runtime_error("compiling it states something of sizes that are known only at run time");
  }
  for (std::size_t i = guards_; i < shapes_->guards().size(); ++i) {
    const shapes::Guard& guard = shapes_->guards()[i];
    list.push_back(graph::List{graph::SymExpr(guard.condition), guard.reason, guard.specialises});
  }
  return list;
}

void StatedGuards::add(const graph::List& guards) const {
  for (const graph::Argument& each : guards) {
    const auto& guard = each.as<graph::List>();
    const shapes::Condition* condition = guard.at(0).as<graph::SymExpr>().condition();
    if (shapes_ == nullptr || condition == nullptr) throw std::runtime_error("it has guards, and the graph no symbols");
    shapes_->take_guard({*condition, guard.at(1).as<std::string>(), exec::CallSite::capture(), guard.at(2).as<bool>()});
  }
}

}  // namespace rehearse::compiler
