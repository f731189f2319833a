// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "sim/decoder/incremental.h"

/// A model of tests/golden/decoder, what transformers computed with it, and runs of our decoder.
namespace kvsim::test {

inline constexpr std::string_view fixture_names[] = {
    "llama-llama3", "llama-linear", "mistral", "gemma2", "gemma3", "qwen2", "qwen3"};

inline std::string fixture_path(std::string_view name, std::string_view file) {
  std::string path = KVSIM_SOURCE_DIR "/tests/golden/decoder/";
  return path.append(name).append("/").append(file);
}

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// The elements of a tensor of 64-bit numbers.
template <class T>
std::vector<T> numbers_of(const SafetensorsFile& file, std::string_view name) {
  static_assert(sizeof(T) == 8 && std::endian::native == std::endian::little);
  const Tensor* tensor = file.find(name);
  if (tensor == nullptr) {
    ADD_FAILURE() << name;
    return {};
  }
  std::vector<T> numbers(tensor->bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor->bytes.data(), tensor->bytes.size());
  return numbers;
}

struct Fixture {
  explicit Fixture(std::string_view name)
      : checkpoint(load_checkpoint(fixture_path(name, "")).value()),
        weights(decoder_weights(checkpoint).value()),
        shape(decoder_shape(checkpoint.config()).value()),
        config(read_json(fixture_path(name, "config.json"))),
        golden(read_json(fixture_path(name, "golden.json"))),
        tensors(SafetensorsFile::open(fixture_path(name, "golden.safetensors")).value()),
        positions(numbers_of<std::int64_t>(tensors, "positions")),
        logits(numbers_of<double>(tensors, "logits")) {
    for (const std::int64_t id : numbers_of<std::int64_t>(tensors, "ids")) {
      ids.push_back(static_cast<std::int32_t>(id));
    }
  }

  Checkpoint checkpoint;
  DecoderWeights weights;
  DecoderShape shape;
  nlohmann::json config;
  nlohmann::json golden;
  SafetensorsFile tensors;
  std::vector<std::int64_t> positions;
  std::vector<double> logits;  // [positions][vocabulary]
  std::vector<std::int32_t> ids;
};

/// Logits at the fixture's positions, and the cache behind the last token.
struct FixtureRun {
  std::vector<double> logits;
  KvCache cache;
};

enum class Passes : std::uint8_t { one, one_per_token };

struct RunSettings {
  std::string_view dispatch = "binary64";
  softfloat::Format storage;
  Passes passes = Passes::one;
};

inline FixtureRun run_fixture(const Fixture& fixture, const DecoderShape& shape,
                              const DecoderWeights& weights, const RunSettings& settings) {
  DecoderArmOptions options{
      .dispatch = DispatchChoice::named(settings.dispatch).value(), .attention = {}, .engine = {}};
  options.storage = settings.storage;
  auto decoder = IncrementalDecoder::make(shape, weights, options);
  if (!decoder) {
    ADD_FAILURE() << decoder.error().message;
    return {};
  }
  FixtureRun run{{}, decoder->new_cache()};
  const auto vocabulary = static_cast<std::size_t>(shape.vocabulary);
  const std::size_t tokens = fixture.ids.size();
  const std::size_t step = settings.passes == Passes::one ? tokens : 1;
  for (std::size_t first = 0; first < tokens; first += step) {
    DecoderPass pass;
    pass.tokens = std::span(fixture.ids).subspan(first, step);
    pass.first_row = static_cast<std::int64_t>(first);
    pass.all_logits = true;
    const auto result = decoder->pass(run.cache, pass);
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return {};
    }
    for (const std::int64_t position : fixture.positions) {
      const auto row = static_cast<std::size_t>(position);
      if (row < first || row >= first + step) continue;
      const auto begin =
          result->logits.begin() + static_cast<std::ptrdiff_t>((row - first) * vocabulary);
      run.logits.insert(run.logits.end(), begin, begin + static_cast<std::ptrdiff_t>(vocabulary));
    }
  }
  return run;
}

inline FixtureRun run_fixture(const Fixture& fixture, const RunSettings& settings) {
  return run_fixture(fixture, fixture.shape, fixture.weights, settings);
}

/// The largest |x|.
inline double largest(std::span<const double> x) {
  double most = 0;
  for (const double each : x) most = std::max(most, std::fabs(each));
  return most;
}

/// How far `found` is from `wanted`. Infinite where they are not of one size.
struct Distance {
  double largest = INFINITY;
  double root_mean_square = INFINITY;
};

inline Distance distance(std::span<const double> found, std::span<const double> wanted) {
  if (found.size() != wanted.size() || wanted.empty()) return {};
  Distance distance{0, 0};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::fabs(found[i] - wanted[i]);
    if (std::isnan(error)) return {};
    distance.largest = std::max(distance.largest, error);
    distance.root_mean_square += error * error;
  }
  distance.root_mean_square =
      std::sqrt(distance.root_mean_square / static_cast<double>(wanted.size()));
  return distance;
}

}  // namespace kvsim::test
