// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/build/arithmetic_values.h"

const volatile ArithmeticValues arithmetic_values = arithmetic_constants;
