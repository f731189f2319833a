// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/log.h"

#include "sim/elementary_double.h"
#include "sim/exp.h"

namespace kvsim {

DoubleDouble log_reference(DoubleDouble x) {
  const double start = elementary::log_double(x.high);
  const DoubleDouble rest = x * exp_reference(DoubleDouble(-start)) - DoubleDouble(1.0);
  // rest − rest²/2 + rest³/3
  const DoubleDouble square = rest * rest;
  const DoubleDouble correction = rest - scale_by_power_of_two(square, -1) + (square * rest) / 3.0;
  return DoubleDouble(start) + correction;
}

}  // namespace kvsim
