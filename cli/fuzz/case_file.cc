// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/case_file.h"

#include <fmt/format.h>

#include <utility>

#include "cli/fuzz/search_run.h"

namespace kvsim {

Result<CaseText> case_text(const ParsedOptions& options) {
  const std::string& action = options.positionals().front();
  if (options.positionals().size() != 2) {
    return Error{ErrorKind::usage,
                 fmt::format("fuzz {0}: one case file is needed: kvsim fuzz {0} FILE", action)};
  }
  const std::string& path = options.positionals()[1];
  auto text = read_text(path);
  if (!text) return text.error();
  return CaseText{path, *std::move(text)};
}

Result<CaseFile> case_file(const ParsedOptions& options) {
  const auto file = case_text(options);
  if (!file) return file.error();
  const std::string& path = file->path;
  auto flip_case = fuzz::parse_case(file->text);
  if (!flip_case) return in_file(path, flip_case.error());
  auto scorer = fuzz::FlipScorer::make(flip_case->shape);
  if (!scorer) return in_file(path, scorer.error());
  return CaseFile{path, *std::move(flip_case), *std::move(scorer)};
}

}  // namespace kvsim
