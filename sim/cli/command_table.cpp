// SPDX-License-Identifier: BSD-3-Clause
#include "cli/commands.h"

// Every command with the names of its options (grammar/options.cpp) and its function: the data behind grammar().
namespace rehearse::cli {
namespace {

constexpr OperandSpec kScenario{"SCENARIO", "which scenario?",
                                "a scenario file (TOML), or a program, which then has all defaults"};
constexpr OperandSpec kReports{
    "FILE", "which decision log, report or dumps?",
    "a decision log (run.rlog), a report.json, or the dumps of a job: files that end in a rank, or their folder", true};

CommandSpec validate_command() {
  return {
      "validate",
      "Runs a scenario in simulation and for real, and compares the two runs. Both have the same seed and inputs. It "
      "compares each rank's calls, the results (RankContext::result), verdict and culprit. The exit code is 0 if they "
      "agree, and 7 if not.",
      kScenario,
      {"--with", "--tolerance", "--seed", "--ranks", "--time-limit", "--output", "--quiet", "--json", "--no-color"},
      {"validate train.toml", "validate train.toml --with=gloo --ranks=4", "validate train.toml --with=nccl --json"},
      &validate,
      kRealComponent};
}

CommandSpec html_command() {
  return {"html",
          "Writes the page of a run again, as report.html beside its input, without running anything. The timeline "
          "comes from the page or the trace.json beside it. docs/GUIDE.md says how to read a page.",
          kReports,
          {"--output", "--quiet"},
          {"html rehearse-out/train/run.rlog", "html rehearse-out/train/report.json --output=train.html",
           "html nccl_trace_rank_* --output=hang.html"},
          &html};
}

CommandSpec merge_command() {
  return {"merge",
          "Combines the reports that the ranks of a real run left in rank-0, rank-1 and so on into one report, or the "
          "shards of a sweep into one summary. The exit code is that of the verdict.",
          {"DIR", "which folder?", "the folder that holds rank-0, rank-1, ..., or the shards, or folders with them"},
          {"--junit", "--json", "--no-color"},
          {"merge rehearse-out/train"},
          &merge};
}

}  // namespace

std::vector<CommandSpec> command_table() {
  return {
      {"run",
       "Runs a scenario once, prints the report, and leaves report, trace and decision log.",
       kScenario,
       {"--seed", "--ranks", "--schedule", "--fault", "--swarm", "--argument", "--date", "--real", "--with",
        "--check-determinism", "--checks", "--check-buffers", "--check-sharing", "--time-limit", "--output", "--quiet",
        "--json", "--no-color"},
       {"run train.toml", "run train.toml --seed=7 --ranks=16 --output=out", "run train.toml --json | jq .verdict"},
       &run},
      {"sweep",
       "Runs a scenario with many seeds, in several processes, until one fails. A seed that fails leaves "
       "report and decision log in a folder of its own; failures with the same verdict and the same place in the "
       "source are counted as one bug. The exit code is that of the lowest failing seed.",
       kScenario,
       {"--seeds",         "--shard",         "--fault",      "--swarm", "--argument", "--date",     "--jobs",
        "--max-failures",  "--keep-going",    "--time-limit", "--junit", "--ranks",    "--schedule", "--checks",
        "--check-buffers", "--check-sharing", "--output",     "--quiet", "--json",     "--no-color"},
       {"sweep train.toml --seeds=1..1000", "sweep train.toml --seeds=1..1000 --keep-going --junit=sweep.xml",
        "sweep train.toml --seeds=1..1000 --shard=2/8 --swarm"},
       &sweep},
      {"replay",
       "Repeats the run of a decision log, decision by decision, and says whether it is the same run. With --seed, or "
       "with a scenario, it runs that seed from the start, as a sweep with the same options does. It writes no files.",
       {"LOG", "which decision log?", "a decision log (run.rlog), or a scenario file (.toml)"},
       {"--seed", "--ranks", "--schedule", "--fault", "--swarm", "--argument", "--date", "--checks", "--check-buffers",
        "--check-sharing", "--time-limit", "--quiet", "--json", "--no-color"},
       {"replay rehearse-out/train/run.rlog", "replay train.toml --seed=7", "replay train.toml --seed=7 --swarm"},
       &replay},
      {"explain",
       "Prints a report again, without running anything. From dumps of PyTorch's flight recorder it makes the report "
       "of the job that left them: verdict, culprits, missing ranks, calls that differ, stacks. docs/EXPLAIN.md",
       kReports,
       {"--json", "--no-color"},
       {"explain rehearse-out/train/run.rlog", "explain rehearse-out/train/report.json", "explain nccl_trace_rank_*"},
       &explain},
      html_command(),
      validate_command(),
      merge_command(),
      {"split",
       "Prints where DDP's buckets cut a model of torch.export, without running it. For each piece it prints the "
       "inputs, the outputs, and the bytes of gradients that its backward fills.",
       {"MODEL", "which model?", "an archive of torch.export (.pt2), or its model.json"},
       {"--bucket-cap", "--first-bucket-cap", "--rules", "--model", "--text", "--dot", "--json"},
       {"split model.pt2 --bucket-cap=25", "split model.pt2 --json | jq '.buckets[].bytes'",
        "split model.pt2 --dot=submod_0 | dot -Tsvg > submod_0.svg"},
       nullptr,
       "split"},
      {"list",
       "Prints the programs of this executable, and the [parameters] that a scenario may give each of them.",
       {"PROGRAM", "", "this one only"},
       {"--json"},
       {"list", "list train"},
       &list},
      {"completion",
       "Prints a script that makes the shell complete commands, options, files and this executable's programs.",
       {"SHELL", "which shell?", "bash, fish or zsh"},
       {},
       {"completion bash > ~/.local/share/bash-completion/completions/train",
        "completion fish > ~/.config/fish/completions/train.fish"},
       &completion},
  };
}

}  // namespace rehearse::cli
