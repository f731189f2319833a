// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "gpu/reveal/positive_fillers.h"
#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

constexpr double ln2 = 0.6931471805599453;
constexpr double tiny_score = -24 * ln2 - 0.2876820724517809;  // ln(0.75 · 2^−24)
constexpr double unit_score = -23 * ln2;
constexpr float filler_score = -69;

/// A number rounded to a format of at most 24 bits.
float rounded(const softfloat::Format& format, double value) {
  std::array<float, 1> number{static_cast<float>(value)};
  // Fails for no format that a back end takes.
  if (!round_values(format, number, number)) return std::numeric_limits<float>::quiet_NaN();
  return number[0];
}

}  // namespace

Error AbsorptionRows::unreadable(const char* why) const {
  return {ErrorKind::cannot_tell, fmt::format("{}: {}", operator_->description(), why)};
}

Result<AbsorptionRows> AbsorptionRows::make(PositiveOperator& reveal_operator) {
  AbsorptionRows rows(reveal_operator);
  const auto done = reveal_operator.kind() == PositiveKind::rms_norm ? rows.calibrate_norm()
                                                                     : rows.calibrate_softmax();
  if (!done) return done.error();
  return rows;
}

Result<bool> AbsorptionRows::calibrate_softmax() {
  const softfloat::Format format = operator_->input();
  elements_ = {.large = 0,
               .tiny = rounded(format, tiny_score),
               .unit = rounded(format, unit_score),
               .filler = filler_score};
  // The first call tells the format of the results.
  const std::vector<float> any(index(operator_->terms()), 0.0F);
  if (const auto out = operator_->run_rows({any}); !out) return out.error();
  const bool narrow = operator_->output().precision < 24;
  if (narrow && operator_->kind() == PositiveKind::softmax) return calibrate_fillers();
  return compare();
}

Result<bool> AbsorptionRows::calibrate_fillers() {
  auto found = find_fillers(*operator_, tiny_score, unit_score);
  if (!found) return found.error();
  elements_ = {
      .large = found->large, .tiny = found->tiny, .unit = found->unit, .filler = found->filler};
  columns_ = std::move(found->columns);
  low_ = std::move(found->low);
  high_ = std::move(found->high);
  return true;
}

Result<bool> AbsorptionRows::calibrate_norm() {
  // Squares of 16-bit numbers are exact in binary32, that of the large element is a power of two.
  const bool wide = operator_->input().exponent_bits >= 8;
  const double large = wide ? 1 : 256;
  const softfloat::Format format = operator_->input();
  elements_ = {.large = static_cast<float>(large),
               .tiny = rounded(format, large * 0x1p-12 * 0.8660254),
               .unit = rounded(format, large * 0x1p-12 * 1.4142135),
               .filler = static_cast<float>(wide ? 0x1p-30 : 0x1p-14)};
  // ε between neighbouring floats at which the result changes: there one ulp of the sum shows. What
  // a row gives falls as ε grows.
  const std::int64_t n = operator_->terms();
  std::vector<float> row(index(n), elements_.filler);
  row[0] = elements_.large;
  const auto mean = static_cast<float>(large * large / static_cast<double>(n));
  const auto result = [&](std::uint32_t code) -> Result<float> {
    const auto out =
        operator_->run_rows({.x = row, .epsilon = static_cast<double>(std::bit_cast<float>(code))});
    if (!out) return out.error();
    return out->front();
  };
  auto below = std::bit_cast<std::uint32_t>(mean / 64);
  auto above = std::bit_cast<std::uint32_t>(mean / 2);
  const auto first = result(below);
  if (!first) return first.error();
  while (above - below > 1) {
    const std::uint32_t middle = below + (above - below) / 2;
    const auto value = result(middle);
    if (!value) return value.error();
    (*value == *first ? below : above) = middle;
  }
  epsilon_ = static_cast<double>(std::bit_cast<float>(below));
  return compare();
}

Result<bool> AbsorptionRows::compare() {
  const std::size_t n = index(operator_->terms());
  struct Places {
    std::size_t large;
    std::size_t other;
  };
  const std::array<Places, 3> places{Places{0, n - 1}, Places{n - 1, 0}, Places{n / 2, n / 2 - 1}};
  std::vector<float> x;
  x.reserve(places.size() * 3 * n);
  for (const Places& at : places) {
    for (const float other : {elements_.filler, elements_.tiny, elements_.unit}) {
      std::vector<float> row(n, elements_.filler);
      row[at.other] = other;
      row[at.large] = elements_.large;
      x.insert(x.end(), row.begin(), row.end());
    }
  }
  const auto out = operator_->run_rows({.x = x, .epsilon = epsilon_});
  if (!out) return out.error();
  const auto read = [&](std::size_t place, std::size_t which) {
    return (*out)[(place * 3 + which) * n + places.at(place).large];
  };
  low_ = {read(0, 0)};
  high_ = {read(0, 2)};
  absorbs_ = true;
  for (std::size_t i = 0; i < places.size(); ++i) {
    absorbs_ = absorbs_ && read(i, 1) == read(i, 0);
    if (read(i, 0) != low_[0] || read(i, 2) != high_[0]) {
      return unreadable("the same two terms give other results in other columns");
    }
  }
  if (low_[0] == high_[0]) {
    return unreadable(
        "a sum of 1 + 2^-23 gives what 1 gives: sums are narrower than binary32, or results are");
  }
  return true;
}

Result<std::vector<bool>> AbsorptionRows::answer(const std::vector<AbsorptionProbe>& probes) {
  const std::size_t n = index(operator_->terms());
  const std::size_t slots = index(operator_->capacity());
  std::vector<bool> met;
  met.reserve(probes.size());
  for (std::size_t begin = 0; begin < probes.size(); begin += slots) {
    const std::size_t used = std::min(slots, probes.size() - begin);
    std::vector<float> x(used * n, elements_.filler);
    for (std::size_t i = 0; i < used; ++i) {
      const AbsorptionProbe& probe = probes[begin + i];
      x[i * n + index(probe.first)] = elements_.tiny;
      x[i * n + index(probe.second)] = elements_.tiny;
      x[i * n + index(probe.large)] = elements_.large;
    }
    const auto out = operator_->run_rows({.x = x, .epsilon = epsilon_});
    if (!out) return out.error();
    for (std::size_t i = 0; i < used; ++i) {
      const AbsorptionProbe& probe = probes[begin + i];
      std::size_t at = 0;
      while (at < columns_.size() && (columns_[at] == probe.first || columns_[at] == probe.second ||
                                      columns_[at] == probe.large)) {
        ++at;
      }
      const std::int64_t column = columns_.empty() ? probe.large : columns_[at];
      const float value = (*out)[i * n + index(column)];
      const std::size_t of = columns_.empty() ? 0 : at;
      if (value != low_[of] && value != high_[of]) {
        return Error{ErrorKind::cannot_tell,
                     fmt::format("{}: with a large term {} and terms {} and {} of less than half "
                                 "an ulp column {} is {}, neither of the two results expected",
                                 operator_->description(), probe.large, probe.first, probe.second,
                                 column, value)};
      }
      met.push_back(value == high_[of]);
    }
  }
  return met;
}

std::vector<float> AbsorptionRows::random_rows(std::int64_t count, std::uint64_t seed,
                                               std::uint64_t number) const {
  const std::int64_t n = operator_->terms();
  const softfloat::Format format = operator_->input();
  const bool squares = operator_->kind() == PositiveKind::rms_norm;
  std::vector<float> x(index(count * n), elements_.filler);
  const std::uint64_t stream = 2 * number;
  for (std::int64_t row = 0; row < count; ++row) {
    const auto draw = [&](std::int64_t i) {
      return philox_bits(seed, stream, static_cast<std::uint64_t>(row * 16 + i));
    };
    float* const at = x.data() + row * n;
    const auto tiny = static_cast<std::int64_t>(2 + draw(0) % 4);
    for (std::int64_t i = 1; i <= tiny; ++i) {
      const double part = uniform(seed, stream + 1, static_cast<std::uint64_t>(row * 16 + i));
      const double value =
          squares ? static_cast<double>(elements_.large) * 0x1p-12 * (0.6 + 0.38 * part)
                  : static_cast<double>(elements_.large) - 24 * ln2 - 0.05 - part;
      at[draw(i) % static_cast<std::uint64_t>(n)] = rounded(format, value);
    }
    at[draw(8) % static_cast<std::uint64_t>(n)] = elements_.large;
  }
  return x;
}

}  // namespace kvsim::gpu
