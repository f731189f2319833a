// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/sink.h"

int main(int argument_count, char** arguments) {
  kvsim::install_signal_handlers();
  const std::vector<std::string> texts(arguments + (argument_count > 0 ? 1 : 0),
                                       arguments + argument_count);
  return static_cast<int>(kvsim::run_program(texts));
}
