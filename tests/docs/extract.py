#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""extract.py <root> <out>: writes the code blocks of README.md, GUIDE.md, COMPILE.md, FAULTS.md, CHECKERS.md and
STATE_CHECKS.md into files, to build and run.

The C++ of README.md is a whole test file; its TOML is a part of an example's scenario. GUIDE.md has these C++ blocks:
the same test, a whole program without GoogleTest, two blocks with statements of a rank's body, a function that uses
checkpoints, and a program. The TOML of GUIDE.md is that program's scenario, and the Python of GUIDE.md makes dumps from
that program's files. The C++ blocks of COMPILE.md, one after the other, are a test file. So are the C++ blocks of
CHECKERS.md, of FAULTS.md and of STATE_CHECKS.md. The TOML blocks of FAULTS.md and STATE_CHECKS.md are scenarios for the
GUIDE's program. A missing or additional block in README.md or GUIDE.md is an error, because it would not be built.
"""
import pathlib
import re
import sys


def blocks(path, language):
    return re.findall(r"^```" + language + r"\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


LICENCE = "// SPDX-License-Identifier: BSD-3-Clause\n"

IN_WORLDS = """// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/device_mesh.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/rehearse.h>

TEST(Guide, DeviceMesh) {
  rehearse::check({.ranks = 4}, [](rehearse::RankContext& ctx) {
    auto x = at::ones({4, 8});
%s  });
}

TEST(Guide, DistributedDataParallel) {
  rehearse::check({.ranks = 2}, [](rehearse::RankContext& ctx) {
    const auto x = at::ones({4, 8}), y = at::ones({4, 1}) * ctx.rank();
%s  });
}
"""

CHECKPOINT = """// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

%s
TEST(Guide, ActivationCheckpointing) {
  std::vector<torch::nn::Linear> layers = {torch::nn::Linear(4, 4), torch::nn::Linear(4, 4)};
  const auto x = at::ones({2, 4});
  forward(layers, x).sum().backward();
  const auto gradient = layers[0]->weight.grad().clone();
  layers[0]->zero_grad();
  at::gelu(layers[1](at::gelu(layers[0](x)))).sum().backward();
  EXPECT_TRUE(gradient.equal(layers[0]->weight.grad()));
}
"""

PROGRAM = """// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

%s"""


def main(root, out):
    root, out = pathlib.Path(root), pathlib.Path(out)
    (test,) = blocks(root / "README.md", "cpp")
    (fault,) = blocks(root / "README.md", "toml")
    if fault not in (root / "docs/examples/elastic_ddp/elastic_ddp.toml").read_text():
        sys.exit("the fault of README.md is not that of docs/examples/elastic_ddp/elastic_ddp.toml")
    guide_test, world, mesh, ddp, layers, program = blocks(root / "docs/GUIDE.md", "cpp")
    (scenario,) = blocks(root / "docs/GUIDE.md", "toml")
    (dumps,) = blocks(root / "docs/GUIDE.md", "python")
    if guide_test != test:
        sys.exit("the tests of README.md and docs/GUIDE.md differ")
    files = {"readme_test.cpp": test, "guide_test.cpp": IN_WORLDS % (mesh, ddp),
             "guide_checkpoint_test.cpp": CHECKPOINT % layers, "guide_world.cpp": LICENCE + world,
             "guide_job.cpp": PROGRAM % program,
             "compile_guide_test.cpp": LICENCE + "\n".join(blocks(root / "docs/COMPILE.md", "cpp")),
             "checkers_test.cpp": LICENCE + "\n".join(blocks(root / "docs/CHECKERS.md", "cpp")),
             "faults_test.cpp": LICENCE + "\n".join(blocks(root / "docs/FAULTS.md", "cpp")),
             "state_checks_test.cpp": LICENCE + "\n".join(blocks(root / "docs/STATE_CHECKS.md", "cpp")),
             "state_checks.toml": blocks(root / "docs/STATE_CHECKS.md", "toml")[0],
             "faults.toml": blocks(root / "docs/FAULTS.md", "toml")[0],
             "swarm.toml": blocks(root / "docs/FAULTS.md", "toml")[1],
             "my_job.toml": scenario, "make_dumps.py": dumps}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = out / name
        if not path.exists() or path.read_text() != text:  # writing the same text again would cost a build
            path.write_text(text)


main(*sys.argv[1:])
