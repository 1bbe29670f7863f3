// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace rehearse_test {

// The trainings of PyTorch's fully_shard that tests/data/fsdp_reference.py recorded in fsdp.json.gz, in the folder of
// recorded data.
class RecordedRuns {
 public:
  // Reads the file once. Throws std::runtime_error that names the file if it cannot be read.
  static const RecordedRuns& load();

  // Names such as "mlp_uneven_2": the case and its number of ranks.
  std::vector<std::string> names() const;
  const nlohmann::json& at(const std::string& name) const;

 private:
  nlohmann::json cases_;
};

}  // namespace rehearse_test
