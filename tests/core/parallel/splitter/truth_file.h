// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace rehearse_test {

// The folder with recorded data: REHEARSE_TRUTH_DIR of the environment, or tests/data/truth if it is unset or empty.
std::string truth_folder();

// The cases of splits.json.gz. They are kept as text; parse() parses one case when a test needs it.
class RecordedSplits {
 public:
  // The cases in the folder, read once. If their file cannot be read or is no list of cases, throws a
  // std::runtime_error that names the file.
  static const RecordedSplits& load();

  const std::map<std::string, std::string>& cases() const { return cases_; }  // name -> JSON
  nlohmann::json parse(const std::string& name) const;

 private:
  std::map<std::string, std::string> cases_;
};

}  // namespace rehearse_test
