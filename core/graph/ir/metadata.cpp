// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/metadata.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include <rehearse/graph/errors.h>

namespace rehearse::graph {
namespace {

void add_symbols(const SymExpr& expression, std::set<std::string>& symbols) {
  for (std::string& symbol : expression.symbols()) symbols.insert(std::move(symbol));
}

void add_symbols(const SymInt& value, std::set<std::string>& symbols) {
  if (value.is_symbolic()) add_symbols(value.expression(), symbols);
}

void add_symbols(const ValueMeta& value, std::set<std::string>& symbols) {
  if (const TensorMeta* tensor = value.tensor()) {
    for (const SymInt& size : tensor->sizes) add_symbols(size, symbols);
    for (const SymInt& stride : tensor->strides) add_symbols(stride, symbols);
    add_symbols(tensor->storage_offset, symbols);
  } else if (const SymScalarMeta* scalar = value.scalar()) {
    add_symbols(scalar->expression, symbols);
  } else if (const ValueMeta::List* items = value.list()) {
    for (const ValueMeta& item : *items) add_symbols(item, symbols);
  }
}

template <class T>
bool same_value(const std::shared_ptr<const T>& left, const std::shared_ptr<const T>& right) {
  return left == right || (left && right && *left == *right);
}

}  // namespace

// Limits the depth, because everything that walks over values, even their destruction, is recursive.
ValueMeta::ValueMeta(List items) : value_(std::move(items)) {
  for (const ValueMeta& item : *list()) depth_ = std::max(depth_, item.depth_);
  if (++depth_ > kMaxNesting)
    throw GraphError("", "value", "lists stand in one another deeper than " + std::to_string(kMaxNesting));
}

SymInt::SymInt(SymExpr expression) {
  if (const shapes::Expr* expr = expression.expr(); expr != nullptr && expr->is_number()) {
    value_ = expr->number();
  } else {
    value_ = std::move(expression);
  }
}

std::string to_string(const SymInt& value) {
  return value.is_symbolic() ? value.expression().text() : std::to_string(value.number());
}

std::vector<std::string> free_symbols(const ValueMeta& value) {
  std::set<std::string> symbols;
  add_symbols(value, symbols);
  return {symbols.begin(), symbols.end()};
}

std::string Origin::trace() const {
  if (!stack_trace.empty()) return stack_trace;
  const std::vector<exec::Frame> frames = site.user_frames();  // innermost first
  std::string text;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->file.empty()) continue;
    text += "File \"" + frame->file + "\", line " + std::to_string(frame->line) + ", in " + frame->function + "\n";
  }
  return text;
}

bool operator==(const Origin& left, const Origin& right) {
  if (left.nn_module_stack != right.nn_module_stack || left.torch_fn != right.torch_fn) return false;
  if (left.label != right.label) return false;
  const bool same_site = left.stack_trace == right.stack_trace && left.site == right.site;
  return same_site || left.trace() == right.trace();
}

std::string Origin::source_line() const {
  // Frames are `File "<path>", line <n>, in <function>`; the last one is the innermost.
  const std::string frames = trace();
  const std::size_t frame = frames.rfind("File \"");
  if (frame == std::string::npos) return "";
  const std::size_t path = frame + 6;
  const std::size_t path_end = frames.find("\", line ", path);
  if (path_end == std::string::npos) return "";
  const std::size_t line = path_end + 8;
  std::size_t line_end = line;
  while (line_end < frames.size() && std::isdigit(static_cast<unsigned char>(frames[line_end]))) ++line_end;
  return frames.substr(path, path_end - path) + ":" + frames.substr(line, line_end - line);
}

std::string source_line(const std::shared_ptr<const Origin>& origin) {
  return origin != nullptr ? origin->source_line() : "";
}

bool operator==(const Metadata& left, const Metadata& right) {
  return same_value(left.value, right.value) && same_value(left.origin, right.origin) &&
         left.unbacked_bindings == right.unbacked_bindings && left.ddp_ignored == right.ddp_ignored &&
         left.brings_history == right.brings_history && left.history_from == right.history_from;
}

Metadata once_brought(Metadata meta, std::size_t brought) {
  if (meta.history_from == 0 || meta.history_from > brought) return meta;
  meta.history_from = 0;
  const TensorMeta* before = meta.tensor();
  if (before == nullptr) return meta;
  TensorMeta now = *before;
  now.requires_grad = true;
  meta.set_value(std::move(now));
  return meta;
}

}  // namespace rehearse::graph
