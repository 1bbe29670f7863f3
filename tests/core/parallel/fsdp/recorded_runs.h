// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace rehearse_test {

// The trainings that PyTorch's fully_shard made, as tests/data/fsdp_reference.py recorded them: fsdp.json.gz in the
// folder of recorded data.
class RecordedRuns {
 public:
  // Read once. Throws std::runtime_error that names the file when it cannot be read.
  static const RecordedRuns& load();

  // "mlp_uneven_2": the case and its number of ranks.
  std::vector<std::string> names() const;
  const nlohmann::json& at(const std::string& name) const;

 private:
  nlohmann::json cases_;
};

}  // namespace rehearse_test
