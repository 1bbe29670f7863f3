// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/stacks.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

// Parts of paths that no file of a user has.
constexpr std::string_view kLibraries[] = {"-packages/torch/", "/torch/csrc/", "/aten/src/", "/c10/",
                                           "<frozen ",         "pybind11/"};

bool has(std::string_view file, std::string_view part) { return file.find(part) != std::string_view::npos; }

bool is_of_python(std::string_view file) {
  if (file.ends_with(".py")) return has(file, "/lib/python3") && !has(file, "-packages/");
  return file.ends_with(".c") && (has(file, "Python/") || has(file, "Objects/") || has(file, "Modules/"));
}

std::string identity_of(const Stacks::Frames& frames) {
  std::string text;
  for (const auto& frame : frames) text += fmt::format("{}\n{}\n{}\n", frame.function, frame.file, frame.line);
  return text;
}

}  // namespace

bool is_of_libraries(const exec::Frame& frame) {
  const std::string_view file = frame.file;
  if (!file.ends_with(".py") && frame.line == 0) return true;  // PyTorch's own binaries have no line numbers
  return file.empty() || file == "??" || file.starts_with("torch/") || is_of_python(file) ||
         std::any_of(std::begin(kLibraries), std::end(kLibraries), [&](auto part) { return has(file, part); });
}

std::size_t Stacks::add(Frames frames) {
  if (frames.empty()) return kNone;
  const auto [entry, is_new] = known_.try_emplace(identity_of(frames), stacks_.size());
  if (is_new) stacks_.push_back(std::move(frames));
  return entry->second;
}

Place Stacks::place(std::size_t stack) const {
  const auto& all = stacks_[stack];
  if (all.empty()) return {};
  const auto own = std::ranges::find_if_not(all, is_of_libraries);
  return exec::place_of(own == all.end() ? all.front() : *own);
}

std::vector<std::string> Stacks::lines(std::size_t stack) const {
  std::vector<std::string> lines;
  for (const auto& frame : stacks_[stack]) {
    lines.push_back(frame.file.empty() ? frame.function
                                       : fmt::format("{} at {}:{}", frame.function, frame.file, frame.line));
  }
  return lines;
}

}  // namespace rehearse::sim
