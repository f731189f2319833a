// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/rope.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/replay/operators.h"
#include "cli/replay/settings.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

struct RopeSettings {
  double base = 10000;
  std::int64_t first_position = 0;
  std::int64_t rotated = 0;
};

Result<RopeSettings> rope_settings(const ParsedOptions& options, std::int64_t head_dim) {
  RopeSettings out;
  const Result<std::optional<float>> base =
      float_option(options, "--base", 1, std::numeric_limits<float>::max());
  if (!base) return base.error();
  out.base = static_cast<double>(base->value_or(10000));
  const Result<std::int64_t> first =
      integer_option(options, "--first-position", 0, 0, std::int64_t{1} << 24);
  if (!first) return first.error();
  out.first_position = *first;
  const Result<std::int64_t> rotated =
      integer_option(options, "--rotated", head_dim - head_dim % 2, 2, head_dim);
  if (!rotated) return rotated.error();
  out.rotated = *rotated;
  return out;
}

Result<std::vector<float>> run_kernel(const TensorValues& x, const RopeKernel& kernel,
                                      const RopeSettings& settings, const EngineOptions& engine) {
  RopeTableProblem table_problem;
  table_problem.storage = x.format;
  table_problem.rotated = settings.rotated;
  table_problem.base = settings.base;
  table_problem.positions = settings.first_position + x.shape[1];
  const Result<RopeTable> table = make_rope_table(kernel, table_problem);
  if (!table) return table.error();
  RopeProblem problem;
  problem.storage = x.format;
  problem.heads = x.shape[0];
  problem.length = x.shape[1];
  problem.head_dim = x.shape[2];
  problem.first_position = settings.first_position;
  problem.x = x.values.data();
  std::vector<float> out(x.values.size());
  const Result<bool> done = apply_rope(kernel, *table, problem, out.data(), engine);
  if (!done) return done.error();
  return out;
}

Result<Replay> replay_rope(const ParsedOptions& options, const ReplayFile& file) {
  const Result<std::vector<const RopeKernel*>> kernels =
      kernels_from(options, "rope", rope_kernels());
  if (!kernels) return kernels.error();
  if (kernels->empty()) {
    return Error{ErrorKind::usage,
                 "replay rope has no --kernel; --kernel NAME (kvsim kernels --operator rope) is "
                 "accepted"};
  }
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  std::int64_t shape[] = {-1, -1, -1};
  const Result<TensorValues> x = file.values("x", shape, "[heads, positions, head_dim]");
  if (!x) return x.error();
  const Result<RopeSettings> settings = rope_settings(options, shape[2]);
  if (!settings) return settings.error();

  Replay replay;
  replay.operator_name = "rope";
  replay.shape = x->shape;
  replay.heads = shape[0];
  replay.positions = shape[1];
  replay.head_name = "head";
  replay.input = Json::object();
  replay.input["input"] = softfloat::format_name(x->format);
  replay.input["sizes"] = {{"heads", shape[0]}, {"positions", shape[1]}, {"head_dim", shape[2]}};
  replay.input["options"] = {{"base", json_number(settings->base)},
                             {"first_position", settings->first_position},
                             {"rotated", settings->rotated}};
  replay.facts.emplace_back("tensors", fmt::format("x [{}, {}, {}], {}", shape[0], shape[1],
                                                   shape[2], softfloat::format_name(x->format)));
  replay.facts.emplace_back(
      "rotated",
      fmt::format("{} channels, base {:g}, positions {} to {}", settings->rotated, settings->base,
                  settings->first_position, settings->first_position + shape[1] - 1));
  for (const RopeKernel* kernel : *kernels) {
    const Result<std::vector<float>> out = run_kernel(*x, *kernel, *settings, *engine);
    if (!out) {
      return Error{out.error().kind,
                   fmt::format("--kernel {}: {}", kernel->name, out.error().message)};
    }
    ReplayOutput output;
    output.name = kernel->name;
    output.evidence = kernel->evidence;
    output.format = x->format;
    output.bytes = encode_values(x->format, *out);
    replay.outputs.push_back(std::move(output));
    replay.input["kernels"].push_back(kernel->name);
  }
  if (replay.outputs.size() == 1) replay.facts.emplace_back("kernel", replay.outputs.front().name);
  return replay;
}

constexpr std::array<std::string_view, 5> rope_options{"--kernel", "--input", "--base",
                                                       "--first-position", "--rotated"};

}  // namespace

const ReplayOperator rope_operator{
    .name = "rope",
    .options = rope_options,
    .run = replay_rope,
};

}  // namespace kvsim
