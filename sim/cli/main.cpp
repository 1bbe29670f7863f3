// SPDX-License-Identifier: BSD-3-Clause
#include "command.h"

int main(int argc, char** argv) { return rehearse::cli::command(argc, argv); }
