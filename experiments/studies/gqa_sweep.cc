// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/gqa_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "sim/decoder.h"
#include "sim/predict/grouped_queries.h"
#include "sim/predict/kernel_choice.h"
#include "sim/predict/prediction_parts.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t prefix = 319;  ///< tokens before the last one
constexpr std::int64_t layers = 3;
constexpr std::int64_t usual_factor = 4;
constexpr std::string_view usual_dispatch = "h100-fa3";

DecoderShape shape_of(const SweepPlace& place) {
  DecoderShape shape;
  shape.layers = layers;
  shape.hidden = 128;
  shape.ffn = 128;
  shape.query_heads = 8;
  shape.head_dim = 64;
  shape.vocabulary = 256;
  const bool is_factor = place.sweep->part == gqa_sweeps[0].part;
  shape.kv_heads = shape.query_heads / (is_factor ? place.value : usual_factor);
  if (!is_factor) shape.head_dim = place.value;
  return shape;
}

/// The dispatch that the arm with the cache names, where the simulator has it.
Result<const Dispatch*> dispatch_of(const StudySetup& setup) {
  for (const ArmSetting& setting : setup.on.settings) {
    if (setting.key == "dispatch") return find_dispatch(setting.value);
  }
  return find_dispatch(usual_dispatch);
}

/// What shared K/V heads do to the errors of attention: part 4 of predict.
Result<Json> grouped_json(const DecoderShape& shape, const Dispatch& dispatch,
                          const softfloat::Format& storage, std::uint64_t seed) {
  PredictionOptions options;
  options.device = &dispatch;
  options.decoder = shape;
  options.storage = storage;
  options.kv_len = prefix + 1;
  options.seed = seed;
  const Result<KernelChoice> kernels = choose_kernels(dispatch, options.on, options.off);
  if (!kernels) return kernels.error();
  const Result<GroupedQueries> grouped =
      group_queries(options, make_attention_part(options, *kernels));
  if (!grouped) return grouped.error();
  Json list = Json::array();
  for (const GroupedError& error : grouped->errors) {
    list.push_back({{"source", error.source},
                    {"correlation", error.mean_correlation},
                    {"amplification", error.amplification},
                    {"projected", error.projected}});
  }
  return Json{{"ceiling", grouped->ceiling},
              {"repeated_differing", grouped->repeated.differing},
              {"errors", std::move(list)}};
}

}  // namespace

std::string sweep_part(const GqaSweep& sweep, std::int64_t value) {
  return fmt::format("{} {}", sweep.part, value);
}

std::optional<SweepPlace> sweep_place(std::string_view part) {
  for (const GqaSweep& sweep : gqa_sweeps) {
    for (const std::int64_t value : sweep.values) {
      if (sweep_part(sweep, value) == part) return SweepPlace{&sweep, value};
    }
  }
  return {};
}

Result<Json> measure_sweep(const StudySetup& setup, const SweepPlace& place, std::uint64_t seed) {
  const Result<const Dispatch*> dispatch = dispatch_of(setup);
  if (!dispatch) return dispatch.error();
  const softfloat::NamedFormat* const storage = softfloat::find_format(setup.engine->storage());
  if (storage == nullptr) {
    return Error{ErrorKind::unavailable, "a format of weights, by engine " + setup.engine->name()};
  }
  DecoderOptions options;
  options.shape = shape_of(place);
  options.storage = storage->format;
  options.on = options.off = *dispatch;
  options.prefix = prefix;
  options.seed = seed;
  options.controls = false;
  const Result<DecoderReport> report = run_decoder(options);
  if (!report) return report.error();
  Json l2 = Json::array();
  Json relative = Json::array();
  for (const kvsim::LayerDrift& layer : report->layers) {
    l2.push_back(layer.on_off.l2);
    relative.push_back(layer.on_off.relative_l2);
  }
  Json values = {
      {"dispatch", (*dispatch)->name}, {"l2", std::move(l2)}, {"relative", std::move(relative)}};
  if (place.sweep->part != gqa_sweeps[0].part) return values;
  Result<Json> grouped = grouped_json(options.shape, **dispatch, options.storage, seed);
  if (!grouped) return grouped.error();
  values["grouped"] = std::move(*grouped);
  return values;
}

}  // namespace kvsim::experiments
