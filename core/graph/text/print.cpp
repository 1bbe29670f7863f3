// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_map>

#include <rehearse/graph/text.h>

#include "graph/ir/submodules.h"
#include "graph/text/enum_names.h"
#include "graph/text/metadata_text.h"

namespace rehearse::graph {
namespace {

// Quotes like JSON; bytes above ASCII stay as they are.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// The shortest text that reads back as the same number and does not look like an integer. If a NaN has other bits than
// the default NaN, the text shows its bits.
std::string number(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  char digits[32];
  if (std::isnan(value) && (bits & ~sign) != std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN())) {
    std::snprintf(digits, sizeof digits, "nan(0x%016" PRIx64 ")", bits);
    return digits;
  }
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  std::string text(digits, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

class Printer {
 public:
  explicit Printer(Origins origins) : origins_(origins) {}

  std::string take() { return std::move(out_); }

  void print(const GraphModule& module, const std::string& indent) {
    numbers_.emplace(&module, numbers_.size());
    out_ += "graph_module " + json_string(module.type()) + " {\n";
    const std::string inner = indent + "  ";
    for (const auto& [name, attribute] : module.attributes()) {
      out_ += inner + "attribute " + json_string(name) + ' ';
      Dict fields = to_dict(attribute.meta);
      if (attribute.ddp_ignored) fields.emplace_back("ddp_ignored", true);
      print(Argument(std::move(fields)));
      out_ += '\n';
    }
    for (const auto& [name, submodule] : module.submodules()) {
      out_ += inner + "submodule " + json_string(name) + ' ';
      const auto known = numbers_.find(submodule.get());
      if (known == numbers_.end()) {
        print(*submodule, inner);
      } else {
        out_ += "shared " + std::to_string(known->second) + '\n';
      }
    }
    for (const Node& node : module.graph()) print(node, inner);
    out_ += indent + "}\n";
  }

  void print(const Argument& argument) {
    if (++depth_ > kMaxTextNesting) {
      throw GraphError("", "argument", "is nested deeper than " + std::to_string(kMaxTextNesting));
    }
    std::visit([this](const auto& value) { put(value); }, argument.value());
    --depth_;
  }

 private:
  void print(const Node& node, const std::string& indent) {
    out_ +=
        indent + '%' + node.name() + " = " + std::string(to_string(node.op())) + ' ' + json_string(node.target()) + ' ';
    put(node.args());
    if (!node.kwargs().empty()) {
      out_ += ' ';
      put(node.kwargs());
    }
    Dict meta = to_dict(node.meta(), origins_);
    if (!meta.empty()) {
      out_ += " ; ";
      put(meta);
    }
    out_ += '\n';
  }

  void put(std::monostate) { out_ += "none"; }
  void put(Node* node) { out_ += '%' + node->name(); }
  void put(bool value) { out_ += value ? "true" : "false"; }
  void put(std::int64_t value) { out_ += std::to_string(value); }
  void put(double value) { out_ += number(value); }
  void put(std::complex<double> value) {
    out_ += "complex(" + number(value.real()) + ", " + number(value.imag()) + ')';
  }
  void put(const std::string& text) { out_ += json_string(text); }
  void put(const SymExpr& expression) { out_ += "sym(" + json_string(expression.text()) + ')'; }
  void put(Ellipsis) { out_ += "..."; }
  void put(c10::ScalarType dtype) { out_ += "dtype(" + name_of(dtype) + ')'; }
  void put(c10::Device device) { out_ += "device(" + json_string(name_of(device)) + ')'; }
  void put(c10::Layout layout) { out_ += "layout(" + name_of(layout) + ')'; }
  void put(c10::MemoryFormat format) { out_ += "memory_format(" + name_of(format) + ')'; }
  void put(const Slice& slice) {
    out_ += "slice";
    put_items(slice.bounds(), '(', ')');
  }
  void put(const List& list) { put_items(list, '[', ']'); }
  void put(const Dict& dict) {
    out_ += '{';
    for (std::size_t i = 0; i < dict.size(); ++i) {
      out_ += (i == 0 ? "" : ", ") + json_string(dict[i].first) + ": ";
      print(dict[i].second);
    }
    out_ += '}';
  }
  void put_items(const List& items, char open, char close) {
    out_ += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(items[i]);
    }
    out_ += close;
  }

  const Origins origins_;
  std::string out_;
  std::unordered_map<const GraphModule*, std::size_t> numbers_;  // counts modules in the order in which they begin
  int depth_ = 0;
};

}  // namespace

std::string to_text(const GraphModule& module, Origins origins) {
  check_nesting(module);
  Printer printer(origins);
  printer.print(module, "");
  return printer.take();
}

std::string to_text(const Argument& argument) {
  Printer printer(Origins::Without);
  printer.print(argument);
  return printer.take();
}

}  // namespace rehearse::graph
