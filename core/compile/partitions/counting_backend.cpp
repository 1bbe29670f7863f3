// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/counting_backend.h>

#include <stdexcept>
#include <utility>

namespace rehearse::compiler {

CountingBackend::CountingBackend(std::shared_ptr<Backend> inner) : inner_(std::move(inner)) {
  if (!inner_) throw std::invalid_argument("CountingBackend: the inner back end is null");
}

CompiledGraph CountingBackend::compile(const BackendInput& input) {
  graphs_.push_back(input.module);
  return inner_->compile(input);
}

std::size_t CountingBackend::nodes() const noexcept {
  std::size_t nodes = 0;
  for (const auto& module : graphs_) {
    for (const graph::Node& node : module->graph()) {
      nodes += node.op() != graph::Op::Placeholder && node.op() != graph::Op::Output;
    }
  }
  return nodes;
}

}  // namespace rehearse::compiler
