// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <utility>

#include "cli/format_option.h"
#include "cli/kernels/own_kernels.h"
#include "cli/number_list.h"
#include "cli/printable.h"
#include "gpu/setting.h"

namespace kvsim {
namespace {

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// The numbers of rows of --same-row, of operators that have rows.
Result<bool> read_same_row(const ParsedOptions& options, RevealRequest& request) {
  if (!options.has("--same-row")) return true;
  for (const std::string_view other : {"--sweep", "--m", "--svg"}) {
    if (!options.has(other)) continue;
    return usage(fmt::format("--same-row is given with {}; one of them is accepted", other));
  }
  auto rows = integer_list_option(options, "--same-row", 1, std::int64_t{1} << 20, 16);
  if (!rows) return rows.error();
  request.same_row = std::move(*rows);
  return true;
}

Result<bool> read_sizes(const ParsedOptions& options, RevealRequest& request) {
  struct Size {
    std::string_view name;
    std::int64_t* value;
    std::int64_t least;
    std::int64_t most;
  };
  gpu::ReductionShape& shape = request.shape;
  auto seed = static_cast<std::int64_t>(request.options.seed);
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  for (const Size& size : std::initializer_list<Size>{
           {"--m", &shape.rows, 1, largest},
           {"--n", &shape.columns, 1, largest},
           {"--k", &shape.terms, 1, largest},
           {"--batch", &shape.batch, 1, largest},
           {"--misaligned", &shape.misalignment, 0, 63},
           {"--threads", &request.threads, 1, 1024},
           {"--outputs", &request.options.least_outputs, 1, std::int64_t{1} << 30},
           {"--most-calls", &request.options.most_calls, 1, std::int64_t{1} << 30},
           {"--seed", &seed, 0, std::int64_t{1} << 62}}) {
    const auto value = integer_option(options, size.name, *size.value, size.least, size.most);
    if (!value) return value.error();
    *size.value = *value;
  }
  request.options.seed = static_cast<std::uint64_t>(seed);
  return true;
}

/// The error for an option that has no default and is missing.
Error missing_option(std::string_view name) {
  return usage(fmt::format("{} is missing; it has no default", name));
}

}  // namespace

Result<std::optional<SweepRequest>> sweep_option(const ParsedOptions& options,
                                                 std::span<const std::string_view> names) {
  const auto text = options.value("--sweep");
  if (!text) return std::optional<SweepRequest>();
  const std::size_t equals = text->find('=');
  const std::size_t dots = text->find("..");
  const std::string name = text->substr(0, equals);
  if (equals == std::string::npos || dots == std::string::npos || dots < equals ||
      std::ranges::find(names, name) == names.end()) {
    return usage(fmt::format("--sweep {} is no range; accepted: {}=A..B, as m=1..64",
                             in_quotes(*text), fmt::join(names, "=A..B, ")));
  }
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  const auto first =
      parse_integer("--sweep", text->substr(equals + 1, dots - equals - 1), 1, largest);
  if (!first) return first.error();
  const auto last = parse_integer("--sweep", text->substr(dots + 2), *first, largest);
  if (!last) return last.error();
  return std::optional<SweepRequest>({*text, name, *first, *last});
}

Result<std::optional<std::string>> save_option(const ParsedOptions& options) {
  std::optional<std::string> name = options.value("--save");
  if (!name) return name;
  for (const std::string_view other : {"--sweep", "--same-row"}) {
    if (!options.has(other)) continue;
    return usage(fmt::format("--save is given with {}; one of them is accepted", other));
  }
  const auto fits = check_own_kernel_name(own_kernels_path(), *name);
  if (!fits) return fits.error();
  return name;
}

Result<std::map<std::string, std::string>> attributes_option(const ParsedOptions& options) {
  std::map<std::string, std::string> attributes;
  for (const std::string& text : options.values("--attribute")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return usage(fmt::format("--attribute {}; accepted: KEY=VALUE", in_quotes(text)));
    }
    attributes[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return attributes;
}

Result<std::unique_ptr<gpu::Backend>> backend_option(const ParsedOptions& options,
                                                     std::int64_t threads) {
  const auto name = options.value("--backend");
  if (!name) return missing_option("--backend");
  if (const auto setting = options.value("--setting")) {
    const auto applied = gpu::apply_setting(*setting);
    if (!applied) return applied.error();
  }
  auto backend = gpu::make_backend(*name);
  if (!backend) return backend.error();
  const auto set = (*backend)->set_threads(threads);
  // A back end without threads has one.
  if (!set && threads != 1) return set.error();
  return backend;
}

Result<RevealRequest> reveal_request(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return usage(fmt::format("{} is no option; reveal takes nothing else",
                             in_quotes(options.positionals().front())));
  }
  RevealRequest request;
  std::optional<std::int64_t> most_terms;  // of a sweep over them
  constexpr std::array<std::string_view, 3> sizes = {"m", "n", "k"};
  auto sweep = sweep_option(options, sizes);
  if (!sweep) return sweep.error();
  request.sweep = std::move(*sweep);
  if (request.sweep && request.sweep->name == "k") most_terms = request.sweep->last;
  if (!options.has("--backend")) return missing_option("--backend");
  if (!options.has("--k") && !most_terms) return missing_option("--k");
  request.shape.operation = options.value("--op").value_or("linear");
  const auto format = format_named("--dtype", options.value("--dtype").value_or("fp32"));
  if (!format) return format.error();
  request.shape.format = (*format)->format;
  if (const auto done = read_sizes(options, request); !done) return done.error();
  if (most_terms) request.shape.terms = *most_terms;
  auto attributes = attributes_option(options);
  if (!attributes) return attributes.error();
  request.shape.attributes = std::move(*attributes);
  request.svg = options.value("--svg");
  if (const auto done = read_same_row(options, request); !done) return done.error();
  auto name = save_option(options);
  if (!name) return name.error();
  request.save = std::move(*name);
  auto backend = backend_option(options, request.threads);
  if (!backend) return backend.error();
  request.backend = std::move(*backend);
  return request;
}

}  // namespace kvsim
