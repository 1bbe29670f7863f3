// SPDX-License-Identifier: BSD-3-Clause
#include "core/parallel/splitter/truth_file.h"

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "core/graph/recorded_graph.h"

namespace rehearse_test {
namespace {

// The position after the closing brace of the object that starts at `from`; npos if the object does not end.
std::size_t end_of_object(std::string_view text, std::size_t from) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// A case's object starts with its name.
std::string name_of(std::string_view object, const std::string& path) {
  constexpr std::string_view key = "\"case\"";
  const auto at = object.find(key);
  const auto from = at == std::string_view::npos ? at : object.find('"', at + key.size());
  if (from == std::string_view::npos) throw std::runtime_error(path + ": a case without a name");
  return std::string(object.substr(from + 1, object.find('"', from + 1) - from - 1));
}

}  // namespace

std::string truth_folder() {
  const char* given = std::getenv("REHEARSE_TRUTH_DIR");
  return given && *given ? given : REHEARSE_TEST_DATA "/truth";
}

const RecordedSplits& RecordedSplits::load() {
  static const RecordedSplits loaded = [] {
    RecordedSplits splits;
    const std::string path = truth_folder() + "/splits.json.gz";
    const std::string text = rehearse::graph::read_gzip(path);
    for (std::size_t from = text.find('{'); from != std::string::npos; from = text.find('{', from)) {
      const std::size_t end = end_of_object(text, from);
      if (end == std::string_view::npos) throw std::runtime_error(path + ": a case does not end");
      const auto object = std::string_view(text).substr(from, end - from);
      splits.cases_.emplace(name_of(object, path), object);
      from = end;
    }
    if (splits.cases_.empty()) throw std::runtime_error(path + " holds no cases");
    return splits;
  }();
  return loaded;
}

nlohmann::json RecordedSplits::parse(const std::string& name) const { return nlohmann::json::parse(cases_.at(name)); }

}  // namespace rehearse_test
