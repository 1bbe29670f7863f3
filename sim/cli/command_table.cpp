// SPDX-License-Identifier: BSD-3-Clause
#include "cli/commands.h"

// Every command with its options and its function: the data behind grammar().
namespace rehearse::cli {
namespace {

constexpr OptionSpec kSeed{"--seed", "N", "7", "instead of the scenario's [world] seed"};
constexpr OptionSpec kRanks{"--ranks", "N", "8", "instead of the scenario's [world] ranks"};
constexpr OptionSpec kOutput{"--output", "DIR", "out", "instead of the scenario's [output] directory", Takes::folder};
constexpr OptionSpec kPage{"--output", "FILE", "train.html", "where the page is written", Takes::file};
constexpr OptionSpec kReal{
    "--real",      "", "", "on GPUs, or in processes, instead of in simulation; docs/REAL.md", Takes::anything, false,
    kRealComponent};
constexpr OptionSpec kWith{"--with",
                           "TRANSPORT",
                           "gloo",
                           "the transport of a real run: automatic, nccl (this process, its GPUs), gloo (a process per "
                           "rank, on the CPU) or processes (a process per GPU)",
                           Takes::transport,
                           false,
                           kRealComponent};
constexpr OptionSpec kFault{"--fault",
                            "FAULT",
                            "'crash rank=3 at=allreduce#12'",
                            "a fault to inject, in addition to the scenario's; may be repeated; docs/FAULTS.md",
                            Takes::anything,
                            true};
constexpr OptionSpec kSwarm{"--swarm", "", "", "draw faults from the scenario's [swarm] families; docs/FAULTS.md"};
constexpr OptionSpec kShard{
    "--shard", "I/N", "2/8",
    "run only this one of N equal parts of the seeds: for arrays of jobs; `merge` joins their results"};
constexpr OptionSpec kSeeds{"--seeds", "A..B", "1..100", "the seeds to run, from A to B"};
constexpr OptionSpec kJobs{"--jobs", "N", "2", "worker processes; default: one per processor"};
constexpr OptionSpec kMaxFailures{"--max-failures", "K", "10", "go on until K seeds have failed; default: 1"};
constexpr OptionSpec kTimeLimit{"--time-limit", "SECONDS", "60",
                                "stop a seed that takes longer in real time, and count it as failed; default: 600"};
constexpr OptionSpec kRunTimeLimit{"--time-limit", "SECONDS", "60",
                                   "stop a run that takes longer in real time; default: no limit"};
constexpr OptionSpec kKeepGoing{"--keep-going", "", "", "run all seeds, however many fail"};
constexpr OptionSpec kJunit{"--junit", "FILE", "sweep.xml", "write JUnit XML: a test case for each seed", Takes::file};
constexpr OptionSpec kReplaySeed{"--seed", "N", "7", "this seed, instead of the log's decisions"};
constexpr OptionSpec kCheckDeterminism{"--check-determinism", "N",   "10", "run N times and compare; without N: twice",
                                       Takes::anything,       false, "",   "2"};
constexpr OptionSpec kSchedule{"--schedule", "SCHEDULE", "pct+preempt",
                               "how ranks are scheduled, in the words of a report; docs/DETERMINISM.md"};
constexpr OptionSpec kChecks{"--checks", "LEVEL", "all",
                             "which checkers run: none, default (memory) or all (also replicas, NaN and Inf); "
                             "docs/CHECKERS.md",
                             Takes::checks};
constexpr OptionSpec kCheckBuffers{"--check-buffers", "", "",
                                   "find tensors that are touched between a call and its wait; docs/CHECKERS.md"};
constexpr OptionSpec kCheckSharing{"--check-sharing", "", "",
                                   "find memory that two ranks give to their calls; docs/CHECKERS.md"};
constexpr OptionSpec kQuiet{"--quiet", "", "", "no banner and no progress"};
constexpr OptionSpec kJson{"--json", "", "", "print only JSON on stdout; the program's own output goes to stderr"};
constexpr OptionSpec kNoColor{"--no-color", "", "",
                              "no colours on a terminal; NO_COLOR in the environment does the same"};

constexpr OptionSpec kTolerance{"--tolerance", "T", "1e-5",
                                "the largest difference between results, relative to the largest number of each; "
                                "default: ranks squared times the dtype's epsilon"};

constexpr OptionSpec kBucketCap{"--bucket-cap", "MB", "25", "DDP's bucket_cap_mb, in MiB; default: 25"};
constexpr OptionSpec kFirstBucketCap{
    "--first-bucket-cap", "MB", "1",
    "the cap of the bucket that is reduced first, in MiB; default: 1, or the other cap if that is less"};
constexpr OptionSpec kRules{"--rules", "RULES", "pytorch",
                            "what counts towards a bucket: default, pytorch or ddp; docs/SPLITTING.md compares them",
                            Takes::rules};
constexpr OptionSpec kModel{"--model", "NAME", "encoder", "the model to read, if the archive has several"};
constexpr OptionSpec kText{"--text", "PIECE", "submod_0", "print this piece's graph instead, as text"};
constexpr OptionSpec kDot{"--dot", "PIECE", "submod_0", "print this piece's graph instead, for Graphviz"};
constexpr OptionSpec kSplitJson{"--json", "", "", "buckets and pieces as JSON"};

constexpr OperandSpec kScenario{"SCENARIO", "which scenario?",
                                "a scenario file (TOML), or a program, which then has all defaults", Takes::scenario};
constexpr OperandSpec kReports{
    "FILE", "which decision log, report or dumps?",
    "a decision log (run.rlog), a report.json, or the dumps of a job: files that end in a rank, or their folder",
    Takes::file, true};

CommandSpec validate_command() {
  return {
      "validate",
      "Runs a scenario in simulation and for real, and compares the two runs. Both have the same seed and inputs. It "
      "compares each rank's calls, the results (RankContext::result), verdict and culprit. The exit code is 0 if they "
      "agree, and 7 if not.",
      kScenario,
      {kWith, kTolerance, kSeed, kRanks, kRunTimeLimit, kOutput, kQuiet, kJson, kNoColor},
      {"validate train.toml", "validate train.toml --with=gloo --ranks=4", "validate train.toml --with=nccl --json"},
      &validate,
      kRealComponent};
}

CommandSpec html_command() {
  return {"html",
          "Writes the page of a run again, as report.html beside its input, without running anything. The timeline "
          "comes from the page or the trace.json beside it. docs/GUIDE.md says how to read a page.",
          kReports,
          {kPage, kQuiet},
          {"html rehearse-out/train/run.rlog", "html rehearse-out/train/report.json --output=train.html",
           "html nccl_trace_rank_* --output=hang.html"},
          &html};
}

CommandSpec merge_command() {
  return {"merge",
          "Combines the reports that the ranks of a real run left in rank-0, rank-1 and so on into one report, or the "
          "shards of a sweep into one summary. The exit code is that of the verdict.",
          {"DIR", "which folder?", "the folder that holds rank-0, rank-1, ..., or the shards, or folders with them",
           Takes::folder},
          {kJunit, kJson, kNoColor},
          {"merge rehearse-out/train"},
          &merge};
}

}  // namespace

std::vector<CommandSpec> known_commands() {
  return {
      {"run",
       "Runs a scenario once, prints the report, and leaves report, trace and decision log.",
       kScenario,
       {kSeed, kRanks, kSchedule, kFault, kSwarm, kReal, kWith, kCheckDeterminism, kChecks, kCheckBuffers,
        kCheckSharing, kRunTimeLimit, kOutput, kQuiet, kJson, kNoColor},
       {"run train.toml", "run train.toml --seed=7 --ranks=16 --output=out", "run train.toml --json | jq .verdict"},
       &run},
      {"sweep",
       "Runs a scenario with many seeds, in several processes, until one fails. A seed that fails leaves "
       "report and decision log in a folder of its own; failures with the same verdict and the same place in the "
       "source are counted as one bug. The exit code is that of the lowest failing seed.",
       kScenario,
       {kSeeds, kShard, kFault, kSwarm, kJobs, kMaxFailures, kKeepGoing, kTimeLimit, kJunit, kRanks, kSchedule, kChecks,
        kCheckBuffers, kCheckSharing, kOutput, kQuiet, kJson, kNoColor},
       {"sweep train.toml --seeds=1..1000", "sweep train.toml --seeds=1..1000 --keep-going --junit=sweep.xml",
        "sweep train.toml --seeds=1..1000 --shard=2/8 --swarm"},
       &sweep},
      {"replay",
       "Repeats the run of a decision log, decision by decision, and says whether it is the same run. With --seed, or "
       "with a scenario, it runs that seed from the start, as a sweep with the same options does. It writes no files.",
       {"LOG", "which decision log?", "a decision log (run.rlog), or a scenario file (.toml)", Takes::log},
       {kReplaySeed, kRanks, kSchedule, kFault, kSwarm, kChecks, kCheckBuffers, kCheckSharing, kRunTimeLimit, kQuiet,
        kJson, kNoColor},
       {"replay rehearse-out/train/run.rlog", "replay train.toml --seed=7", "replay train.toml --seed=7 --swarm"},
       &replay},
      {"explain",
       "Prints a report again, without running anything. From dumps of PyTorch's flight recorder it makes the report "
       "of the job that left them: verdict, culprits, missing ranks, calls that differ, stacks. docs/EXPLAIN.md",
       kReports,
       {kJson, kNoColor},
       {"explain rehearse-out/train/run.rlog", "explain rehearse-out/train/report.json", "explain nccl_trace_rank_*"},
       &explain},
      html_command(),
      validate_command(),
      merge_command(),
      {"split",
       "Prints where DDP's buckets cut a model of torch.export, without running it. For each piece it prints the "
       "inputs, the outputs, and the bytes of gradients that its backward fills.",
       {"MODEL", "which model?", "an archive of torch.export (.pt2), or its model.json", Takes::model},
       {kBucketCap, kFirstBucketCap, kRules, kModel, kText, kDot, kSplitJson},
       {"split model.pt2 --bucket-cap=25", "split model.pt2 --json | jq '.buckets[].bytes'",
        "split model.pt2 --dot=submod_0 | dot -Tsvg > submod_0.svg"},
       nullptr,
       "split"},
      {"list",
       "Prints the programs of this executable, and the [parameters] that a scenario may give each of them.",
       {"PROGRAM", "", "this one only", Takes::program},
       {kJson},
       {"list", "list train"},
       &list},
      {"completion",
       "Prints a script that makes the shell complete commands, options, files and this executable's programs.",
       {"SHELL", "which shell?", "bash, fish or zsh", Takes::shell},
       {},
       {"completion bash > ~/.local/share/bash-completion/completions/train",
        "completion fish > ~/.config/fish/completions/train.fish"},
       &completion},
  };
}

}  // namespace rehearse::cli
