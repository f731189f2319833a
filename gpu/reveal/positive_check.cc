// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Delta debugging of one row: elements lose their weight in pieces as long as the difference
/// stays.
class RowShrinker {
 public:
  RowShrinker(PositiveOperator& of, const PositiveModel& model,
              const PositiveObservation& observation, std::int64_t row)
      : operator_(of), model_(model), observation_(observation) {
    const std::size_t n = index(of.terms());
    const auto first = observation.x.begin() + row * of.terms();
    row_.assign(first, first + of.terms());
    largest_ = static_cast<std::size_t>(std::ranges::max_element(row_) - row_.begin());
    columns_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (softmax() && i == largest_) continue;  // it decides what the others weigh
      columns_.push_back(static_cast<std::int64_t>(i));
    }
  }

  Result<FailingRow> run() {
    std::size_t piece = (columns_.size() + 1) / 2;
    for (int calls = 0; piece > 0 && columns_.size() > 1 && calls < most_calls;) {
      bool smaller = false;
      for (std::size_t begin = 0; begin < columns_.size() && calls < most_calls; ++calls) {
        std::vector<std::int64_t> fewer = columns_;
        const std::size_t end = std::min(columns_.size(), begin + piece);
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(begin),
                    fewer.begin() + static_cast<std::ptrdiff_t>(end));
        const auto differs = try_columns(fewer);
        if (!differs) return differs.error();
        smaller = smaller || *differs;
        if (*differs) {
          columns_ = std::move(fewer);
        } else {
          begin += piece;
        }
      }
      if (piece == 1 && !smaller) break;
      piece = (piece + 1) / 2;
    }
    if (const auto last = try_columns(columns_); !last) return last.error();
    if (softmax()) {
      columns_.push_back(static_cast<std::int64_t>(largest_));
      std::ranges::sort(columns_);
    }
    found_.columns = columns_;
    found_.x.reserve(columns_.size());
    for (const std::int64_t column : columns_) found_.x.push_back(row_[index(column)]);
    found_.epsilon = observation_.epsilon;
    return std::move(found_);
  }

 private:
  static constexpr int most_calls = 600;

  [[nodiscard]] bool softmax() const { return operator_.kind() != PositiveKind::rms_norm; }

  Result<bool> try_columns(const std::vector<std::int64_t>& columns) {
    std::vector<float> row(row_.size(), softmax() ? row_[largest_] - 69 : 0.0F);
    if (const auto done = round_values(operator_.input(), row, row); !done) return done.error();
    if (softmax()) row[largest_] = row_[largest_];
    for (const std::int64_t column : columns) row[index(column)] = row_[index(column)];
    const PositiveOperator::Call call{row, observation_.weight, observation_.epsilon};
    const auto seen = operator_.run_rows(call);
    if (!seen) return seen.error();
    const auto again = replay(model_, operator_.terms(), call);
    if (!again) return again.error();
    for (std::size_t i = 0; i < seen->size(); ++i) {
      if (same_bits((*seen)[i], (*again)[i])) continue;
      found_.column = static_cast<std::int64_t>(i);
      found_.seen = (*seen)[i];
      found_.replayed = (*again)[i];
      return true;
    }
    return false;
  }

  PositiveOperator& operator_;
  const PositiveModel& model_;
  const PositiveObservation& observation_;
  std::vector<float> row_;
  std::size_t largest_ = 0;
  std::vector<std::int64_t> columns_;
  FailingRow found_;
};

}  // namespace

Result<std::vector<float>> positive_rows(const PositiveOperator& of,
                                         const AbsorptionRows* absorption, PositiveData data,
                                         std::int64_t count, std::uint64_t seed,
                                         std::uint64_t number) {
  if (data == PositiveData::absorption && absorption != nullptr) {
    return absorption->random_rows(count, seed, number);
  }
  const bool squares = of.kind() == PositiveKind::rms_norm;
  const bool wide = data == PositiveData::wide;
  const std::uint64_t stream = 8 * number + (wide ? 2 : 0) + (std::uint64_t{1} << 41);
  std::vector<float> x(index(count * of.terms()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (squares) {
      const double size =
          wide ? std::ldexp(1.0, static_cast<int>(8 * uniform(seed, stream + 1, i)) - 4) : 1.0;
      x[i] = static_cast<float>(normal(seed, stream, i) * size);
    } else {
      x[i] =
          static_cast<float>(wide ? -20 * uniform(seed, stream, i) : 3 * normal(seed, stream, i));
    }
  }
  if (const auto done = round_values(of.input(), x, x); !done) return done.error();
  return x;
}

Result<std::vector<PositiveObservation>> observe(PositiveOperator& of,
                                                 const AbsorptionRows* absorption,
                                                 const PositiveAmount& amount, std::uint64_t seed,
                                                 std::uint64_t number) {
  const std::int64_t n = of.terms();
  const std::int64_t rows = std::max<std::int64_t>(64, amount.outputs / (3 * n) + 1);
  std::vector<PositiveObservation> all;
  for (const PositiveData data :
       {PositiveData::gaussian, PositiveData::wide, PositiveData::absorption}) {
    const bool absorbed = data == PositiveData::absorption && absorption != nullptr;
    auto x = positive_rows(of, absorption, data,
                           absorbed ? std::max<std::int64_t>(512, rows) : rows, seed, number);
    if (!x) return x.error();
    PositiveObservation observation{.x = std::move(*x), .weight = {}, .epsilon = {}, .out = {}};
    if (of.kind() == PositiveKind::rms_norm) observation.epsilon = of.epsilon();
    if (absorbed && absorption->epsilon()) observation.epsilon = absorption->epsilon();
    if (amount.weights && data == PositiveData::gaussian) {
      observation.weight.resize(index(n));
      for (std::size_t i = 0; i < observation.weight.size(); ++i) {
        observation.weight[i] =
            static_cast<float>(normal(seed, 8 * number + 5 + (std::uint64_t{1} << 41), i));
      }
      const auto done = round_values(of.input(), observation.weight, observation.weight);
      if (!done) return done.error();
    }
    auto out = of.run_rows({observation.x, observation.weight, observation.epsilon});
    if (!out) return out.error();
    observation.out = std::move(*out);
    all.push_back(std::move(observation));
  }
  return all;
}

Result<PositiveComparison> compare(const PositiveModel& model, std::int64_t terms,
                                   std::span<const PositiveObservation> observations,
                                   std::int64_t enough) {
  PositiveComparison comparison;
  for (std::size_t i = 0; i < observations.size() && comparison.different <= enough; ++i) {
    const PositiveObservation& seen = observations[i];
    const auto again = replay(model, terms, {seen.x, seen.weight, seen.epsilon});
    if (!again) return again.error();
    for (std::size_t k = 0; k < again->size(); ++k) {
      ++comparison.compared;
      if (same_bits(seen.out[k], (*again)[k])) continue;
      if (comparison.different++ > 0) continue;
      comparison.observation = i;
      comparison.row = static_cast<std::int64_t>(k) / terms;
      comparison.column = static_cast<std::int64_t>(k) % terms;
    }
    comparison.rows += static_cast<std::int64_t>(again->size()) / terms;
  }
  return comparison;
}

Result<FailingRow> shrink(PositiveOperator& of, const PositiveModel& model,
                          const PositiveObservation& observation,
                          const PositiveComparison& comparison) {
  return RowShrinker(of, model, observation, comparison.row).run();
}

}  // namespace kvsim::gpu
