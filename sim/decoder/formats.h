// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/dispatch.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// The formats of one arm.
struct DecoderFormats {
  std::optional<softfloat::Format> weights;  ///< none: as they stand
  /// What the input of a linear layer is rounded to first; none: not at all.
  std::optional<softfloat::Format> operands;
  std::optional<softfloat::Format> accumulator;  ///< of linear layers; none: the kernel's
  softfloat::Format activations;
  softfloat::Format kv;
  softfloat::Format logits;

  friend bool operator==(const DecoderFormats&, const DecoderFormats&) = default;
};

/// Fills what `formats` leaves open: activations are `storage`, K/V and logits are as activations.
/// Errors (usage): a format with numbers that are not floats; with binary64 arithmetic nothing is
/// rounded and everything is binary64.
[[nodiscard]] Result<DecoderFormats> resolve_formats(const Dispatch& dispatch,
                                                     const softfloat::Format& storage);

/// A format that has all numbers of both: one of the two, or binary32.
[[nodiscard]] softfloat::Format joint_format(const softfloat::Format& a,
                                             const softfloat::Format& b);

/// Whether these are numbers of the format, a NaN of any kind included. Holds true, or a usage
/// error that names the first number which is not.
[[nodiscard]] Result<bool> check_numbers(const softfloat::Format& format,
                                         std::span<const double> numbers);

}  // namespace kvsim
