// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/dump_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "report/writers/text_lines.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kStacksShown = 4;
constexpr std::size_t kFramesShown = 8;                     // per stack
constexpr std::size_t kFrameBegins = 100, kFrameEnds = 60;  // bytes shown of a frame with a long name

std::string line_of(std::string_view prefix, std::string_view text, std::size_t width) {
  const auto indent = std::min(prefix.find_first_not_of(' '), prefix.size());
  return wrapped(prefix, text, width, indent + 2) + "\n";
}

// Cuts the names of C++ templates, which can fill screens.
std::string shortened(const std::string& frame) {
  if (frame.size() <= kFrameBegins + kFrameEnds) return frame;
  return frame.substr(0, kFrameBegins) + " ... " + frame.substr(frame.size() - kFrameEnds);
}

std::string stack_text(const DumpFacts::Stack& stack, std::size_t width) {
  const auto& frames = stack.own.empty() ? stack.frames : stack.own;
  if (frames.empty()) return "";
  auto text = line_of("stack of ", fmt::format("{} in {}:", describe_ranks(stack.ranks), stack.call), width);
  const auto shown = std::min(frames.size(), kFramesShown);
  for (std::size_t i = 0; i < shown; ++i) text += line_of("  ", shortened(frames[i]), width);
  if (shown < frames.size()) text += fmt::format("  ... and {} more frames\n", frames.size() - shown);
  return text;
}

}  // namespace

std::string stacks_text(const DumpFacts& dumps, std::size_t width) {
  std::string text;
  const auto shown = std::min(dumps.stacks.size(), kStacksShown);
  for (std::size_t i = 0; i < shown; ++i) text += stack_text(dumps.stacks[i], width);
  std::size_t left_out = 0;
  for (std::size_t i = shown; i < dumps.stacks.size(); ++i) left_out += dumps.stacks[i].ranks.size();
  if (left_out > 0 && !text.empty())
    text += fmt::format("... and those of {} more rank{}, see --json\n", left_out, left_out == 1 ? "" : "s");
  return text;
}

std::string dumps_banner(const Report& report, std::size_t width) {
  const auto transport = report.transport.empty() ? "" : ", carried by " + report.transport;
  return line_of("",
                 fmt::format("rehearse {} ranks={}: {} calls in the dump{} of {}, format {}{}", report.version,
                             report.ranks, report.operations, report.dumps->ranks.size() == 1 ? "" : "s",
                             describe_ranks(report.dumps->ranks), report.dumps->format, transport),
                 width);
}

}  // namespace rehearse::sim
