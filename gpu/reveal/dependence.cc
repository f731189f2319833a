// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/dependence.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "gpu/reveal/cancel_data.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using Bits = std::vector<std::uint32_t>;

Bits bits_of(std::span<const float> values) {
  Bits bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// One call of an operator of this shape.
Result<std::vector<float>> call(Backend& backend, const ReductionShape& shape,
                                const CallData& data) {
  auto reduction = make_reduction(backend, shape);
  if (!reduction) return reduction.error();
  return (*reduction)->run(data.left, data.right);
}

void count(Dependence& found, std::span<const float> a, std::span<const float> b) {
  const Bits first = bits_of(a);
  const Bits second = bits_of(b);
  for (std::size_t i = 0; i < first.size(); ++i) {
    ++found.compared;
    found.different += first[i] != second[i] ? 1 : 0;
  }
}

/// Remembers the bits of every size that was tried.
class Sweep {
 public:
  Sweep(Backend& backend, ReductionShape shape, SweptSize swept, std::int64_t first,
        std::int64_t last, std::uint64_t seed)
      : backend_(backend), shape_(std::move(shape)), swept_(swept), seed_(seed) {
    // What every size of the sweep has.
    size() = std::max<std::int64_t>(1, first);
    columns_ = shape_.columns;
    size() = last;
  }

  Result<bool> try_size(std::int64_t value) {
    if (seen_.contains(value)) return true;
    size() = value;
    auto reduction = make_reduction(backend_, shape_);
    if (!reduction) return reduction.error();
    Bits bits;
    for (std::uint64_t number = 0; number < 2; ++number) {
      const CallData data = cancel_data(**reduction, DataKind::cancel, seed_, number);
      const auto sums = (*reduction)->run(data.left, data.right);
      if (!sums) return sums.error();
      const Bits row = bits_of(std::span(*sums).first(index(columns_)));
      bits.insert(bits.end(), row.begin(), row.end());
    }
    seen_[value] = std::move(bits);
    return true;
  }

  /// Narrows every gap between neighbours that differ down to 1.
  Result<bool> bisect() {
    for (bool again = true; again;) {
      again = false;
      std::int64_t before = -1;
      const Bits* bits = nullptr;
      std::vector<std::int64_t> next;
      for (const auto& [value, own] : seen_) {
        if (bits != nullptr && *bits != own && value - before > 1) {
          next.push_back(before + (value - before) / 2);
        }
        before = value;
        bits = &own;
      }
      for (const std::int64_t value : next) {
        if (const auto done = try_size(value); !done) return done;
        again = true;
      }
    }
    return true;
  }

  [[nodiscard]] std::vector<SizeClass> classes() const {
    std::vector<SizeClass> classes;
    const Bits* bits = nullptr;
    for (const auto& [value, own] : seen_) {
      if (bits == nullptr || *bits != own) classes.push_back({value, value});
      classes.back().last = value;
      bits = &own;
    }
    return classes;
  }

 private:
  std::int64_t& size() { return swept_ == SweptSize::rows ? shape_.rows : shape_.columns; }

  Backend& backend_;
  ReductionShape shape_;
  SweptSize swept_;
  std::uint64_t seed_;
  std::int64_t columns_ = 1;
  std::map<std::int64_t, Bits> seen_;
};

}  // namespace

Result<std::vector<Dependence>> find_dependences(Backend& backend, const ReductionShape& shape,
                                                 std::int64_t threads, std::uint64_t seed) {
  auto reduction = make_reduction(backend, shape);
  if (!reduction) return reduction.error();
  const CallData data = cancel_data(**reduction, DataKind::cancel, seed, 4);
  const auto sums = (*reduction)->run(data.left, data.right);
  if (!sums) return sums.error();
  std::vector<Dependence> found;

  Dependence of_threads{.what = "2 threads"};
  if (backend.set_threads(threads == 2 ? 1 : 2)) {
    if (threads == 2) of_threads.what = "1 thread";
    const auto again = call(backend, shape, data);
    if (!again) return again.error();
    count(of_threads, *sums, *again);
    if (const auto set = backend.set_threads(threads); !set) return set.error();
  } else {
    of_threads.possible = false;
  }
  found.push_back(of_threads);

  Dependence of_rows{.what = "other rows"};
  if (shape.rows > 1) {
    CallData other = cancel_data(**reduction, DataKind::cancel, seed, 5);
    std::copy_n(data.left.begin(), shape.terms, other.left.begin());
    other.right = data.right;
    const auto again = call(backend, shape, other);
    if (!again) return again.error();
    count(of_rows, std::span(*sums).first(index(shape.columns)),
          std::span(*again).first(index(shape.columns)));
  } else {
    of_rows.possible = false;
  }
  found.push_back(of_rows);

  const std::int64_t bytes = (shape.format.width() + 7) / 8;
  for (const std::int64_t elements : {1, 2, 4}) {
    ReductionShape moved = shape;
    moved.misalignment = (shape.misalignment + elements * bytes) % 64;
    Dependence of_place{.what = fmt::format("{} bytes off", elements * bytes)};
    const auto again = call(backend, moved, data);
    if (!again) return again.error();
    count(of_place, *sums, *again);
    found.push_back(of_place);
  }
  return found;
}

Result<std::vector<SizeClass>> sweep(Backend& backend, ReductionShape shape, SweptSize swept,
                                     std::int64_t first, std::int64_t last, std::int64_t every,
                                     std::uint64_t seed) {
  Sweep sizes(backend, std::move(shape), swept, first, last, seed);
  std::vector<std::int64_t> tried;
  if (last - first < every) {
    for (std::int64_t value = first; value <= last; ++value) tried.push_back(value);
  } else {
    // Close together at the small end, where kernels change.
    for (std::int64_t step = 0; first + step <= last;
         step = step < 16 ? step + 1 : step + step / 4) {
      tried.push_back(first + step);
    }
    tried.push_back(last);
  }
  for (const std::int64_t value : tried) {
    if (const auto done = sizes.try_size(value); !done) return done.error();
  }
  if (const auto done = sizes.bisect(); !done) return done.error();
  return sizes.classes();
}

}  // namespace kvsim::gpu
