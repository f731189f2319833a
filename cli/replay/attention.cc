// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/kernels/own_attention.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/replay/attention_launch.h"
#include "cli/replay/exp_settings.h"
#include "cli/replay/operators.h"
#include "cli/replay/settings.h"
#include "sim/attention/kernel.h"
#include "sim/attention/run.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Format;

/// q [query_heads, queries, head_dim], k and v [kv_heads, keys, head_dim]: of one sequence, or of a
/// batch whose sequences share the positions evenly.
struct AttentionFile {
  Format format;
  std::int64_t query_heads = -1;
  std::int64_t kv_heads = -1;
  std::int64_t queries = -1;
  std::int64_t keys = -1;
  std::int64_t head_dim = -1;
  std::vector<float> q, k, v;
};

Result<AttentionFile> read_tensors(const ReplayFile& file) {
  std::int64_t q_shape[] = {-1, -1, -1};
  Result<TensorValues> q = file.values("q", q_shape, "[query_heads, query_len, head_dim]");
  if (!q) return q.error();
  std::int64_t kv_shape[] = {-1, -1, q_shape[2]};
  Result<TensorValues> k = file.values(
      "k", kv_shape, fmt::format("[kv_heads, kv_len, {}], head_dim as of q,", q_shape[2]));
  if (!k) return k.error();
  Result<TensorValues> v = file.values(
      "v", kv_shape,
      fmt::format("[{}, {}, {}], the shape of k,", kv_shape[0], kv_shape[1], kv_shape[2]));
  if (!v) return v.error();
  if (k->format != q->format || v->format != q->format) {
    return Error{ErrorKind::usage,
                 fmt::format("{}: q is {}, k {} and v {}; one format is accepted (or --input "
                             "FORMAT)",
                             printable(file.path()), softfloat::format_name(q->format),
                             softfloat::format_name(k->format), softfloat::format_name(v->format))};
  }
  if (q_shape[0] % kv_shape[0] != 0) {
    return Error{ErrorKind::usage,
                 fmt::format("{}: q has {} heads and k has {}; query heads that are a multiple of "
                             "the key/value heads are accepted",
                             printable(file.path()), q_shape[0], kv_shape[0])};
  }
  return AttentionFile{q->format,           q_shape[0], kv_shape[0],          q_shape[1],
                       kv_shape[1],         q_shape[2], std::move(q->values), std::move(k->values),
                       std::move(v->values)};
}

/// Positions first … first + count − 1 of every head of [heads][positions][width].
std::vector<float> cut_positions(const std::vector<float>& in, std::int64_t heads,
                                 std::int64_t positions, std::int64_t width, std::int64_t first,
                                 std::int64_t count) {
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(heads * count * width));
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto begin = in.begin() + (head * positions + first) * width;
    out.insert(out.end(), begin, begin + count * width);
  }
  return out;
}

/// What the sequences of a launch chose: one value where all agree.
Json chosen(const std::vector<std::int64_t>& values) {
  for (const std::int64_t value : values) {
    if (value != values.front()) return values;
  }
  return values.front();
}

/// One kernel on every sequence of one launch.
Result<ExpSettings::Values> run_launch(const AttentionTable& table, const AttentionFile& file,
                                       const AttentionKernel& kernel,
                                       const AttentionSettings& settings,
                                       const BatchLengths& lengths, const AttentionOptions& options,
                                       Json& choices) {
  const auto sequences = static_cast<std::int64_t>(lengths.kv_lens.size());
  const std::int64_t query_len = file.queries / sequences;
  const std::int64_t slot = file.keys / sequences;
  ExpSettings::Values out;
  out.exp = ExpKnowledge::exact;
  out.values.resize(static_cast<std::size_t>(file.query_heads * file.queries * file.head_dim));
  std::vector<std::int64_t> splits;
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < sequences; ++i) {
    const std::int64_t kv_len = lengths.kv_lens[static_cast<std::size_t>(i)];
    const auto q = cut_positions(file.q, file.query_heads, file.queries, file.head_dim,
                                 i * query_len, query_len);
    const auto k = cut_positions(file.k, file.kv_heads, file.keys, file.head_dim, i * slot, kv_len);
    const auto v = cut_positions(file.v, file.kv_heads, file.keys, file.head_dim, i * slot, kv_len);
    AttentionProblem problem;
    problem.shape = {file.query_heads, file.kv_heads, query_len, kv_len, file.head_dim};
    problem.mask = settings.mask;
    problem.storage = file.format;
    problem.scale = settings.scale;
    problem.q = q.data();
    problem.k = k.data();
    problem.v = v.data();
    problem.launch = launch_of(settings, lengths);
    const Result<bool> fits = table.check_layer(kernel, problem);
    if (!fits) return fits.error();
    const Result<AttentionResult> result = run_attention(kernel, problem, options);
    if (!result) return result.error();
    splits.push_back(result->splits);
    columns.push_back(result->block_columns);
    if (result->exp_bounded) out.exp = ExpKnowledge::bounded;
    for (std::int64_t head = 0; head < file.query_heads; ++head) {
      const std::int64_t count = query_len * file.head_dim;
      std::copy_n(result->out.begin() + head * count, count,
                  out.values.begin() + (head * file.queries + i * query_len) * file.head_dim);
    }
    if (result->lse.empty()) continue;
    out.log_sums.resize(static_cast<std::size_t>(file.query_heads * file.queries));
    for (std::int64_t head = 0; head < file.query_heads; ++head) {
      std::copy_n(result->lse.begin() + head * query_len, query_len,
                  out.log_sums.begin() + head * file.queries + i * query_len);
    }
  }
  choices["splits"] = chosen(splits);
  choices["block"] = chosen(columns);
  return out;
}

Result<Replay> replay_attention(const ParsedOptions& options, const ReplayFile& file) {
  const Result<AttentionTable> table = AttentionTable::make(options.values("--kernel"));
  if (!table) return table.error();
  const Result<std::vector<const AttentionKernel*>> kernels =
      kernels_from(options, "attention", table->kernels());
  if (!kernels) return kernels.error();
  if (kernels->empty()) {
    return Error{ErrorKind::usage,
                 "replay attention has no --kernel; --kernel NAME, such as --kernel h100-fa3 "
                 "(kvsim kernels --operator attention), is accepted"};
  }
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  const Result<ExpSettings> exp = ExpSettings::from(options);
  if (!exp) return exp.error();
  const Result<AttentionFile> tensors = read_tensors(file);
  if (!tensors) return tensors.error();
  const Result<AttentionSettings> settings =
      attention_settings(options, tensors->queries, tensors->keys);
  if (!settings) return settings.error();

  Replay replay;
  replay.operator_name = "attention";
  replay.shape = {tensors->query_heads, tensors->queries, tensors->head_dim};
  replay.heads = tensors->query_heads;
  replay.positions = tensors->queries;
  replay.head_name = "head";
  replay.position_name = "query";
  replay.position_names = "queries";
  replay.input = Json::object();
  replay.input["input"] = softfloat::format_name(tensors->format);
  replay.input["sizes"] = {{"query_heads", tensors->query_heads},
                           {"kv_heads", tensors->kv_heads},
                           {"queries", tensors->queries},
                           {"keys", tensors->keys},
                           {"head_dim", tensors->head_dim}};
  replay.input["options"] = settings_json(*settings);
  exp->describe(replay.input["options"]);
  replay.facts.emplace_back(
      "tensors", fmt::format("q [{}, {}, {}], k and v [{}, {}, {}], {}", tensors->query_heads,
                             tensors->queries, tensors->head_dim, tensors->kv_heads, tensors->keys,
                             tensors->head_dim, softfloat::format_name(tensors->format)));
  replay.facts.emplace_back("mask", mask_text(settings->mask));
  replay.facts.emplace_back("launch", launch_text(*settings));
  Progress progress("replay attention", options);
  const std::size_t runs = kernels->size() * settings->batches.size();
  for (const AttentionKernel* kernel : *kernels) {
    for (const BatchLengths& lengths : settings->batches) {
      progress.show(static_cast<double>(replay.outputs.size()) / static_cast<double>(runs));
      ReplayOutput output;
      output.name = settings->batches.size() == 1
                        ? std::string(kernel->name)
                        : fmt::format("{} {}", kernel->name, lengths.text);
      output.evidence = kernel->evidence;
      const Result<bool> done = exp->fill(
          output, output_format(*kernel, tensors->format), [&](const ExpOptions& exp_options) {
            return run_launch(*table, *tensors, *kernel, *settings, lengths, {*engine, exp_options},
                              output.choices);
          });
      if (!done) {
        return Error{done.error().kind,
                     fmt::format("--kernel {}: {}", kernel->name, done.error().message)};
      }
      replay.outputs.push_back(std::move(output));
    }
    replay.input["kernels"].push_back(kernel->name);
  }
  if (replay.outputs.size() == 1) replay.facts.emplace_back("kernel", replay.outputs.front().name);
  return replay;
}

constexpr std::array<std::string_view, 18> attention_options{
    "--kernel",          "--input",   "--causal",    "--no-causal",   "--window",    "--soft-cap",
    "--scale",           "--kv-lens", "--batch",     "--split-by",    "--splits",    "--split-size",
    "--multiprocessors", "--paged",   "--page-size", "--cpu-threads", "--exp-table", "--exp-ulp"};

}  // namespace

const ReplayOperator attention_operator{
    .name = "attention",
    .options = attention_options,
    .run = replay_attention,
};

}  // namespace kvsim
