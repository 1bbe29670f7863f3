// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/explanation.h>

#include <fmt/format.h>

#include <rehearse/graph/text.h>

namespace rehearse::compiler {
namespace {

void add_lines(std::string& text, const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  text += fmt::format("  {}:\n", title);
  for (const std::string& line : lines) text += fmt::format("    {}\n", line);
}

std::string cache_text(const GraphExplanation& graph) {
  switch (graph.cache) {
    case CacheUse::Off:
      return "";
    case CacheUse::Hit:
      return "    read from the cache\n";
    case CacheUse::Miss:
      return fmt::format("    not read from the cache: {}\n", graph.cache_reason);
    case CacheUse::Bypass:
      break;
  }
  return fmt::format("    not for the cache: {}\n", graph.cache_reason);
}

void add_entry_text(std::string& text, std::size_t index, const EntryExplanation& entry) {
  text += fmt::format("entry {}: {} {}\n", index, entry.graphs.size(), entry.graphs.size() == 1 ? "graph" : "graphs");
  for (const GraphExplanation& graph : entry.graphs) {
    text +=
        fmt::format("  {}: {} nodes{}{}\n", graph.name, graph.nodes, graph.reason.empty() ? "" : "; ", graph.reason);
    text += cache_text(graph);
    if (!graph.eager_because.empty()) text += fmt::format("    runs under eager autograd: {}\n", graph.eager_because);
  }
  if (entry.graphs.size() > 1) text += entry.bucket_table;
  add_lines(text, "not split further", entry.split_warnings);
  add_lines(text, "guards on sizes", entry.guards);
  add_lines(text, "remarks", entry.remarks);
  add_lines(text, "kept by reference", entry.kept_by_reference);
}

}  // namespace

std::vector<std::string> Explanation::break_reasons() const {
  std::vector<std::string> reasons;
  for (const EntryExplanation& entry : entries) {
    for (const GraphExplanation& graph : entry.graphs) {
      if (!graph.reason.empty()) reasons.push_back(graph.reason);
    }
  }
  return reasons;
}

std::vector<PieceText> Explanation::pieces() const {
  std::vector<PieceText> pieces;
  for (std::size_t entry = 0; entry < entries.size(); ++entry) {
    for (const GraphExplanation& graph : entries[entry].graphs) {
      if (graph.module != nullptr) pieces.push_back({entry, graph.name, graph::to_text(*graph.module)});
    }
  }
  return pieces;
}

std::string Explanation::text() const {
  std::string text =
      fmt::format("{}: {} calls, {} served by the cache, {} compilations, {} graphs, {} calls as it is\n", function,
                  stats.calls, stats.hits, stats.compiles, stats.graphs, stats.eager_calls);
  if (!refusal.empty()) text += fmt::format("runs as it is: {}\n", refusal);
  for (const std::string& warning : cache_warnings) text += fmt::format("cache of compiled graphs: {}\n", warning);
  for (std::size_t i = 0; i < entries.size(); ++i) add_entry_text(text, i, entries[i]);
  for (const Recompile& recompile : recompiles) {
    text += fmt::format("call {} was not served:\n", recompile.call);
    for (const GuardFailure& failure : recompile.failures) text += fmt::format("  {}\n", text_of(failure));
  }
  return text;
}

}  // namespace rehearse::compiler
