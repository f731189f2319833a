// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/state_noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/inputs.h"
#include "sim/philox.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::experiments {
namespace {

using softfloat::Format;

/// Draws at consecutive indices of one stream.
class Draws {
 public:
  explicit Draws(const NoiseAddress& address) : address_(address) {}

  double uniform() { return kvsim::uniform(address_.seed, address_.stream, index_++); }
  /// +1 or −1.
  std::int64_t sign() { return uniform() < 0.5 ? -1 : 1; }
  /// 0 … count − 1.
  std::size_t below(std::size_t count) {
    const auto drawn = static_cast<std::size_t>(uniform() * static_cast<double>(count));
    return std::min(drawn, count - 1);
  }

 private:
  NoiseAddress address_;
  std::uint64_t index_ = 0;
};

/// Changes the numbers of each layer's keys and of its values in turn.
Result<bool> for_each_block(
    EngineSequence& sequence, std::int64_t rows,
    const std::function<Result<bool>(const StateBlock&, std::vector<double>&)>& change) {
  const std::int64_t layers = sequence.state_shape().layers;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      const StateBlock block{layer, part, 0, rows};
      Result<std::vector<double>> numbers = sequence.state(block);
      if (!numbers) return numbers.error();
      Result<bool> done = change(block, *numbers);
      if (done) done = sequence.set_state(block, *numbers);
      if (!done) return done;
    }
  }
  return true;
}

double square(double x) { return x * x; }

/// Σ (a − b)².
double squares_between(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += square(a[i] - b[i]);
  return sum;
}

/// Moves numbers in random order, by so many steps each, until the sum of squared changes is
/// reached. Returns the sum.
double move_by(std::vector<double>& numbers, const Format& format, std::int64_t steps,
               double squares, Draws& draws) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double moved = 0;
  for (std::size_t left = order.size(); left > 0 && moved < squares; --left) {
    std::swap(order[draws.below(left)], order[left - 1]);
    double& number = numbers[order[left - 1]];
    const double before = number;
    number = stepped(format, before, draws.sign() * steps);
    moved += square(number - before);
  }
  return moved;
}

/// The same with the fewest steps that reach it.
void move_until(std::vector<double>& numbers, const Format& format, double squares, Draws& draws) {
  if (squares == 0) return;
  double of_one_step = 0;
  for (const double number : numbers) {
    of_one_step += square(stepped(format, number, 1) - number);
  }
  const std::vector<double> before = numbers;
  const double least = std::ceil(std::sqrt(squares / of_one_step));
  auto steps = static_cast<std::int64_t>(std::clamp(least, 1.0, 0x1p30));
  // A step down from a power of two is half a step up, so one more may be needed now and then.
  constexpr int tries = 16;
  for (int i = 0; i < tries; ++i, steps += 1 + steps / 8) {
    numbers = before;
    if (move_by(numbers, format, steps, squares, draws) >= squares) return;
  }
}

}  // namespace

double stepped(const Format& format, double value, std::int64_t steps) {
  if (steps == 0) return value;
  constexpr softfloat::Mode mode;
  const softfloat::Bits code =
      softfloat::convert(format, softfloat::binary64, softfloat::from_double(value), mode).bits;
  const auto magnitude = static_cast<std::int64_t>(code & format.magnitude_mask());
  const bool is_negative = (code & format.sign_bit()) != 0;
  const auto most = static_cast<std::int64_t>(format.max_finite());
  const std::int64_t place =
      std::clamp((is_negative ? -magnitude : magnitude) + steps, -most, most);
  const auto size = static_cast<softfloat::Bits>(place < 0 ? -place : place);
  return softfloat::to_double(format, place < 0 ? size | format.sign_bit() : size);
}

Result<StateDistance> state_distance(const EngineSequence& a, const EngineSequence& b,
                                     std::int64_t rows) {
  StateDistance distance;
  const std::int64_t layers = a.state_shape().layers;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      const StateBlock block{layer, part, 0, rows};
      const Result<std::vector<double>> ours = a.state(block);
      if (!ours) return ours.error();
      const Result<std::vector<double>> theirs = b.state(block);
      if (!theirs) return theirs.error();
      distance.squares += squares_between(*ours, *theirs);
      for (std::size_t i = 0; i < ours->size(); ++i) {
        distance.norm_squares += square((*ours)[i]);
        if ((*ours)[i] != (*theirs)[i]) ++distance.differing;
      }
      distance.numbers += std::ssize(*ours);
    }
  }
  return distance;
}

Result<bool> add_ulp_noise(EngineSequence& sequence, std::int64_t rows, double ulps,
                           const NoiseAddress& address) {
  const Format format = sequence.state_shape().format;
  const double whole = std::floor(ulps);
  Draws draws(address);
  return for_each_block(sequence, rows,
                        [&](const StateBlock& /*block*/, std::vector<double>& numbers) {
                          for (double& number : numbers) {
                            const double more = draws.uniform() < ulps - whole ? 1 : 0;
                            const auto steps = static_cast<std::int64_t>(whole + more);
                            number = stepped(format, number, draws.sign() * steps);
                          }
                          return Result<bool>(true);
                        });
}

Result<bool> add_matched_noise(EngineSequence& sequence, const EngineSequence& other,
                               std::int64_t rows, const NoiseAddress& address) {
  const Format format = sequence.state_shape().format;
  Draws draws(address);
  return for_each_block(sequence, rows,
                        [&](const StateBlock& block, std::vector<double>& numbers) -> Result<bool> {
                          const Result<std::vector<double>> theirs = other.state(block);
                          if (!theirs) return theirs.error();
                          move_until(numbers, format, squares_between(numbers, *theirs), draws);
                          return true;
                        });
}

}  // namespace kvsim::experiments
