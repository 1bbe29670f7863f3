// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/leaf.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::compiler {
namespace {

std::string text_of_tensor(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const c10::SymInt& size : tensor.sym_sizes()) {
    sizes.push_back(size.is_symbolic() ? "?" : std::to_string(size.as_int_unchecked()));
  }
  return fmt::format("tensor {}[{}]", c10::toString(tensor.scalar_type()), fmt::join(sizes, ", "));
}

}  // namespace

std::string_view text_of(LeafKind kind) noexcept {
  switch (kind) {
    case LeafKind::Tensor:
      return "tensor";
    case LeafKind::Undefined:
      return "undefined tensor";
    case LeafKind::SymInt:
      return "symbolic int";
    case LeafKind::Int:
      return "int";
    case LeafKind::Bool:
      return "bool";
    case LeafKind::Double:
      return "double";
    case LeafKind::Text:
      return "string";
    case LeafKind::Group:
      return "process group";
    case LeafKind::Length:
      return "length";
    case LeafKind::Choice:
      return "alternative";
  }
  return "?";
}

std::string text_of(const Leaf& leaf) {
  switch (leaf.kind) {
    case LeafKind::Tensor:
      return text_of_tensor(*leaf.tensor);
    case LeafKind::SymInt:
      return leaf.sym_int->is_symbolic() ? "symbolic" : std::to_string(leaf.sym_int->as_int_unchecked());
    case LeafKind::Bool:
      return leaf.number != 0 ? "true" : "false";
    case LeafKind::Double:
      return fmt::format("{}", std::bit_cast<double>(leaf.number));
    case LeafKind::Text:
      return fmt::format("'{}'", *leaf.text);
    case LeafKind::Undefined:
    case LeafKind::Group:
      return std::string(text_of(leaf.kind));
    case LeafKind::Length:
    case LeafKind::Choice:
      return fmt::format("{} {}", text_of(leaf.kind), leaf.number);
    case LeafKind::Int:
      return std::to_string(leaf.number);
  }
  return "?";
}

std::string exact_text_of(const Leaf& leaf) {
  const std::string kind(text_of(leaf.kind));
  if (leaf.kind == LeafKind::Group) return fmt::format("{} {}", kind, static_cast<const void*>(leaf.group));
  if (leaf.kind == LeafKind::Double) return fmt::format("{} {} ({:x})", kind, text_of(leaf), leaf.number);
  return kind + " " + text_of(leaf);
}

}  // namespace rehearse::compiler
