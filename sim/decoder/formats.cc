// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/engine/columns.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// Whether every number of `inner` is one of `outer`.
bool holds(const softfloat::Format& outer, const softfloat::Format& inner) {
  return outer == inner || (outer.precision >= inner.precision && outer.emax() >= inner.emax() &&
                            outer.emin() - outer.precision <= inner.emin() - inner.precision &&
                            (outer.has_infinity() || !inner.has_infinity()) &&
                            (outer.has_nan() || !inner.has_nan()) &&
                            (outer.has_negative_zero() || !inner.has_negative_zero()));
}

}  // namespace

Result<bool> check_numbers(const softfloat::Format& format, std::span<const double> numbers) {
  if (format == softfloat::binary64) return true;
  std::vector<float> rounded(numbers.begin(), numbers.end());
  Result<bool> done = round_values(format, rounded, rounded);
  if (!done) return done;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i]) ? std::isnan(rounded[i])
                               : static_cast<double>(rounded[i]) == numbers[i]) {
      continue;
    }
    return Error{ErrorKind::usage, fmt::format("the number {}; accepted: numbers of {}", numbers[i],
                                               softfloat::format_name(format))};
  }
  return true;
}

softfloat::Format joint_format(const softfloat::Format& a, const softfloat::Format& b) {
  if (holds(a, b)) return a;
  return holds(b, a) ? b : softfloat::binary32;
}

Result<DecoderFormats> resolve_formats(const Dispatch& dispatch, const softfloat::Format& storage) {
  const DispatchFormats& set = dispatch.formats;
  DecoderFormats formats;
  formats.weights = set.weights;
  if (dispatch.arithmetic == DispatchArithmetic::binary64) {
    formats.activations = formats.kv = formats.logits = softfloat::binary64;
    return formats;
  }
  formats.operands = set.operands;
  formats.accumulator = set.accumulator;
  formats.activations = set.activations.value_or(storage);
  formats.kv = set.kv.value_or(formats.activations);
  formats.logits = set.logits.value_or(formats.activations);
  for (const softfloat::Format& format : {formats.activations, formats.kv, formats.logits}) {
    if (!holds(softfloat::binary32, format)) {
      return Error{ErrorKind::usage,
                   fmt::format("format {} of a decoder; accepted: formats whose numbers are all "
                               "floats",
                               softfloat::format_name(format))};
    }
  }
  return formats;
}

}  // namespace kvsim
