// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/printable.h"

namespace kvsim {
namespace {

constexpr std::size_t line_width = 100;

// `text` broken at blanks so that each line, set in by `indent`, fits; the first line is not set
// in.
std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t used = indent;
  bool at_start = true;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    const std::size_t width = display_width(word);
    if (!at_start && used + 1 + width > line_width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      at_start = true;
    }
    if (!at_start) {
      out += ' ';
      ++used;
    }
    out += word;
    used += width;
    at_start = false;
  }
  return out;
}

std::string option_label(const OptionSpec& option) {
  std::string label = "  " + std::string(option.name);
  if (!option.value_name.empty()) label += " " + std::string(option.value_name);
  return label;
}

std::string option_list(std::span<const OptionSpec> options, std::size_t indent) {
  std::string out;
  for (const OptionSpec& option : options) {
    const std::string label = option_label(option);
    out += label;
    if (display_width(label) + 2 > indent) {
      out += "\n" + std::string(indent, ' ');
    } else {
      out += std::string(indent - display_width(label), ' ');
    }
    out += wrap(option.help, indent) + "\n";
  }
  return out;
}

constexpr std::size_t option_indent = 24;

}  // namespace

std::string program_help() {
  std::string out =
      "kvsim shows what a key-value cache, a kernel or a summation order does to a language "
      "model's\n"
      "numbers: exact models of low-precision arithmetic, replayed bit for bit.\n\n"
      "usage: kvsim COMMAND [OPTIONS]\n\ncommands:\n";
  for (const Command* command : commands()) {
    out += fmt::format("  {:<12}{}\n", command->name, command->summary);
  }
  out += "\noptions of every command:\n" + option_list(global_options(), option_indent);
  out +=
      "\nexamples:\n"
      "  kvsim predict --head-dim 256 --gqa 4\n"
      "  kvsim replay attention --tensors qkv.safetensors --kernel h100-fa3 --kernel a100-fa2\n"
      "  kvsim eval fma --format fp16 0x3c00 1.5 -0.25\n"
      "\n`kvsim COMMAND --help` tells more. Exit codes: 0 done, 1 a check failed, 2 usage, 3 file "
      "or\n"
      "system, 4 cannot tell, 5 not available here, 130 interrupted.\n";
  return out;
}

std::string command_help(const Command& command) {
  std::string out = fmt::format("usage: kvsim {} {}\n\n{}\n", command.name, command.synopsis,
                                command.description);
  if (!command.options.empty()) {
    out += "\noptions:\n" + option_list(command.options, option_indent);
  }
  out += "\noptions of every command:\n" + option_list(global_options(), option_indent);
  out += fmt::format("\nexamples:\n{}\n", command.examples);
  return out;
}

}  // namespace kvsim
