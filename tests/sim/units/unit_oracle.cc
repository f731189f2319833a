// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/units/unit_oracle.h"

#include <algorithm>

#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {
namespace {

constexpr long unit_bits = 2400;  // the integer 1 stands for 2^-2400

/// A number, and the exponent that the alignment reads for it.
struct Number {
  Kind kind = Kind::zero;
  bool negative = false;
  Integer value;
  int exponent = 0;
  Bits code = 0;
};

Number number(const Format& format, Bits code) {
  const Operand o = decode(format, code);
  Number n{o.kind, o.negative, Integer(o.significand).shifted(unit_bits + o.exponent), 0, code};
  if (o.negative) n.value = n.value.negated();
  if (o.kind == Kind::finite) {
    n.exponent = std::max(o.exponent + bit_length(o.significand) - 1, limits(format).emin);
  }
  return n;
}

/// The number that the unit multiplies: 32-bit codes lose 13 bits, 8-bit ones may become 16-bit.
Number input(const MatrixUnit& unit, Bits code) {
  if (unit.operand == unit.input) return number(unit.input, code);
  Number n = number(unit.operand, code);
  if (n.kind == Kind::nan) return n;
  if (unit.operand.width() == 32) {
    const bool away = unit.operand_rounding == OperandRounding::nearest_ties_away;
    return number(unit.input, (code + (away ? 0x1000 : 0)) >> 13);
  }
  if (n.kind == Kind::finite) {
    n.exponent = static_cast<int>(std::max(n.value.log2() - unit_bits, -14L));
  }
  return n;
}

Number product(const Number& x, const Number& y) {
  Number p;
  p.negative = x.negative != y.negative;
  const auto either = [&](Kind kind) { return x.kind == kind || y.kind == kind; };
  if (either(Kind::nan) || (either(Kind::infinite) && either(Kind::zero))) {
    p.kind = Kind::nan;
  } else if (either(Kind::infinite)) {
    p.kind = Kind::infinite;
  } else if (!either(Kind::zero)) {
    p.kind = Kind::finite;
    p.value = (x.value * y.value).shifted(-unit_bits);
    p.exponent = x.exponent + y.exponent;
  }
  return p;
}

struct Conversion {
  Format format;
  Mode mode;
  int shift;
};

Conversion conversion(const MatrixUnit& unit) {
  Mode truncating;
  truncating.rounding = Rounding::toward_zero;
  truncating.overflow = Overflow::infinity;
  switch (unit.conversion) {
    case OutputConversion::rz_fp32:
      return {{8, 24, 127}, truncating, 0};
    case OutputConversion::rz_e8m13:
      return {{8, 14, 127}, truncating, 10};
    case OutputConversion::rne_fp16:
      return {{5, 11, 15}, {}, 0};
    case OutputConversion::rne_fp32:
      return {{8, 24, 127}, {}, 0};
    default:
      return {{11, 53, 1023}, {}, 0};
  }
}

/// A finite sum, converted; `negative_zero` for a sum of terms that are all −0.
Bits converted(const MatrixUnit& unit, const Integer& sum, bool negative_zero = false) {
  const Conversion to = conversion(unit);
  if (sum.sign() == 0) return negative_zero ? limits(to.format).sign << to.shift : 0;
  return round(exact_value(sum.get(), -unit_bits), to.format, to.mode).bits << to.shift;
}

/// True where infinities or NaN decide; then `out` is the result.
bool special(const MatrixUnit& unit, std::span<const Number> terms, Bits& out) {
  const auto any = [&](Kind kind, bool negative) {
    return std::any_of(terms.begin(), terms.end(), [&](const Number& n) {
      return n.kind == kind && (kind == Kind::nan || n.negative == negative);
    });
  };
  const bool plus = any(Kind::infinite, false), minus = any(Kind::infinite, true);
  const Limits l = limits(unit.output);
  if (any(Kind::nan, false) || (plus && minus)) {
    out = unit.nan_code;
    return true;
  }
  out = l.infinity | (minus ? l.sign : 0);
  return plus || minus;
}

bool all_negative_zeros(std::span<const Number> terms) {
  return std::all_of(terms.begin(), terms.end(),
                     [](const Number& n) { return n.kind == Kind::zero && n.negative; });
}

/// One block: numbers, their products, the scales of each pair.
struct Block {
  std::vector<Number> a, b, products, a_scales, b_scales;
};

/// T-FDPA over terms with their exponents; the addend is the last one.
Bits truncated_sum(const MatrixUnit& unit, std::vector<Number> terms) {
  Bits out = 0;
  if (special(unit, terms, out)) return out;
  int largest = unit.zero_exponent;
  for (const Number& n : terms) {
    if (n.kind == Kind::finite) largest = std::max(largest, n.exponent);
  }
  Integer sum;
  for (const Number& n : terms) {
    if (n.kind == Kind::finite) {
      sum += n.value.truncated(unit_bits + largest - unit.fraction_bits);
    }
  }
  return converted(unit, sum, all_negative_zeros(terms));
}

std::vector<Number> scaled_terms(const MatrixUnit& unit, const Block& block) {
  std::vector<Number> terms;
  const bool grouped = unit.operation == UnitOperation::gst_fdpa;
  const std::size_t width = grouped ? 16 : 1;
  for (std::size_t i = 0; i < block.products.size(); i += width) {
    Number term;
    bool nan_scale = false, any = false;
    for (std::size_t k = i; k < i + width; ++k) {
      nan_scale =
          nan_scale || block.a_scales[k].kind == Kind::nan || block.b_scales[k].kind == Kind::nan;
      any = any || block.products[k].kind == Kind::finite;
      term.value += block.products[k].value;
    }
    const Number scale = product(block.a_scales[i], block.b_scales[i]);
    term.negative = block.products[i].negative;
    if (grouped && !any) {
      term.negative = true;
      for (std::size_t k = i; k < i + width; ++k) term.negative &= block.products[k].negative;
    }
    if (!grouped && block.products[i].kind != Kind::finite) {
      term.kind = block.products[i].kind;
    } else if (any && scale.kind == Kind::finite) {
      term.kind = Kind::finite;
      term.value = (term.value * scale.value).shifted(-unit_bits);
      term.exponent = scale.exponent + (grouped ? 0 : block.products[i].exponent);
    } else if (any) {
      term.negative = term.value.sign() < 0;
    }
    if (nan_scale) term.kind = Kind::nan;
    terms.push_back(term);
  }
  return terms;
}

/// ⌊log2⌋ of a sum, as a binary32 reads it.
long exponent(const Integer& x) {
  return x.sign() == 0 ? -126 : std::max(x.log2() - unit_bits, -126L);
}

Bits rounded_down_sum(const MatrixUnit& unit, const Block& block, const Number& addend) {
  const bool grouped = unit.operation == UnitOperation::gtr_fdpa;
  const int fraction = unit.fraction_bits;
  std::vector<Number> terms = block.products;
  for (Number& n : terms) {
    if (n.kind == Kind::finite && n.value.log2() >= unit_bits + 128) n.kind = Kind::infinite;
  }
  const std::size_t step = grouped ? 2 : 1;
  Integer sums[2];
  int largest[2] = {-999, -999};
  for (std::size_t first = 0; first < step; ++first) {
    for (std::size_t i = first; i < terms.size(); i += step) {
      if (terms[i].kind == Kind::finite) {
        largest[first] = std::max(largest[first], terms[i].exponent);
      }
    }
    for (std::size_t i = first; i < terms.size(); i += step) {
      if (terms[i].kind != Kind::finite) continue;
      sums[first] += terms[i].value.truncated(unit_bits + largest[first] - fraction);
    }
  }
  const int products = std::max(largest[0], largest[1]);
  const bool finite = addend.kind == Kind::finite || addend.kind == Kind::zero;
  // The addend's exponent field is what is compared: that of infinity and NaN is read as −1.
  const int addend_exponent = addend.kind == Kind::finite ? addend.exponent : finite ? -126 : -1;
  const int e = std::max(products, addend_exponent);
  Number c = addend;
  if (grouped && addend_exponent < e - fraction - 1) c = Number{};
  terms.push_back(c);
  Bits out = 0;
  if (special(unit, terms, out)) return out;

  Integer sum = sums[0];
  if (grouped) {
    sum = sums[0].floored(unit_bits + products - fraction);
    sum += sums[1].floored(unit_bits + products - fraction);
  }
  sum = sum.floored(unit_bits + e - unit.final_bits - 1);
  if (c.kind == Kind::finite) sum += c.value.floored(unit_bits + e - fraction);
  if (unit.final_rounding_down) {
    sum = sum.floored(unit_bits + exponent(sum) - unit.final_bits);
  }
  return converted(unit, sum, all_negative_zeros(terms));
}

Bits exact_block(const MatrixUnit& unit, const Block& block, const Number& c) {
  std::vector<Number> terms = block.products;
  terms.push_back(c);
  Bits out = 0;
  if (special(unit, terms, out)) return out;
  Integer sum;
  for (const Number& n : terms) sum += n.value;
  return converted(unit, sum);
}

/// IEEE 754 a × b + c and x + y in the unit's format; a result that rounds to a subnormal number
/// is flushed where `flush`.
Bits rounded_once(const MatrixUnit& unit, std::span<const Number> terms, bool flush,
                  const Mode& mode) {
  Bits out = 0;
  if (special(unit, terms, out)) return out;
  Integer sum;
  for (const Number& n : terms) sum += n.value;
  const Limits l = limits(unit.output);
  if (sum.sign() == 0) return all_negative_zeros(terms) ? l.sign : 0;
  out = round(exact_value(sum.get(), -unit_bits), unit.output, mode).bits;
  const bool subnormal = (out & l.infinity) == 0;
  return flush && subnormal ? out & l.sign : out;
}

Number flushed(const Format& format, const Number& n) {
  const bool tiny =
      n.kind == Kind::zero || (n.kind == Kind::finite && decode(format, n.code).subnormal);
  return tiny ? Number{} : n;
}

Bits flushing_block(const MatrixUnit& unit, const Block& block, Bits c) {
  std::vector<Bits> sums;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const Number p[] = {product(flushed(unit.input, block.a[i]), flushed(unit.input, block.b[i]))};
    sums.push_back(rounded_once(unit, p, true, {}));
  }
  const auto add = [&](Bits x, Bits y) {
    const Number terms[] = {number(unit.output, x), number(unit.output, y)};
    return rounded_once(unit, terms, true, {});
  };
  while (sums.size() > 1) {
    std::vector<Bits> next;
    for (std::size_t i = 0; i < sums.size(); i += 2) next.push_back(add(sums[i], sums[i + 1]));
    sums = next;
  }
  return add(c, sums[0]);
}

/// The NaN of an x86 instruction: the first operand that is one, made quiet.
Bits first_nan(const MatrixUnit& unit, Bits result, std::span<const Bits> operands) {
  if (decode(unit.output, result).kind != Kind::nan) return result;
  if (unit.nan_rule == NanRule::fixed) return unit.nan_code;
  for (const Bits operand : operands) {
    if (decode(unit.output, operand).kind == Kind::nan) return operand | 0x00400000;
  }
  return unit.nan_code;
}

/// A 16-bit code as a binary32 code with the same value, or the same NaN.
Bits as_binary32(const MatrixUnit& unit, const Number& n) {
  if (unit.input == unit.output) return n.code;
  const int width = unit.input.trailing_bits();
  if (n.kind == Kind::nan) {
    return (n.negative ? 0x80000000U : 0U) | 0x7f800000U |
           ((n.code & ((Bits{1} << width) - 1)) << (23 - width));
  }
  if (n.kind == Kind::infinite) return (n.negative ? 0x80000000U : 0U) | 0x7f800000U;
  if (n.kind == Kind::zero) return n.negative ? 0x80000000U : 0U;
  return round(exact_value(n.value.get(), -unit_bits), unit.output, {}).bits;
}

/// An operand of a chain of fused multiply-adds; a subnormal is a zero where the row says so.
Number operand(const MatrixUnit& unit, Bits code) {
  Number n = number(unit.output, code);
  if (flushes_inputs(unit.mode) && decode(unit.output, code).subnormal) {
    n.kind = Kind::zero;
    n.value = Integer();
  }
  return n;
}

Bits fma(const MatrixUnit& unit, const Number& a, const Number& b, Bits c) {
  const Bits codes[] = {as_binary32(unit, a), as_binary32(unit, b), c};
  const Number terms[] = {product(operand(unit, codes[0]), operand(unit, codes[1])),
                          operand(unit, c)};
  return first_nan(unit, rounded_once(unit, terms, false, unit.mode), codes);
}

Bits add(const MatrixUnit& unit, Bits x, Bits y) {
  const Bits codes[] = {x, y};
  const Number terms[] = {operand(unit, x), operand(unit, y)};
  return first_nan(unit, rounded_once(unit, terms, false, unit.mode), codes);
}

Bits block_result(const MatrixUnit& unit, const Block& block, Bits c) {
  using enum UnitOperation;
  const Number addend = number(unit.output, c);
  const UnitOperation operation = unit.operation;
  if (operation == e_fdpa) return exact_block(unit, block, addend);
  if (operation == ftz_add_mul) return flushing_block(unit, block, c);
  if (operation == tr_fdpa || operation == gtr_fdpa) return rounded_down_sum(unit, block, addend);
  std::vector<Number> terms = operation == t_fdpa ? block.products : scaled_terms(unit, block);
  terms.push_back(addend);
  return truncated_sum(unit, terms);
}

}  // namespace

Bits expected_dot(const MatrixUnit& unit, std::span<const Bits> a, std::span<const Bits> b, Bits c,
                  std::span<const Bits> a_scales, std::span<const Bits> b_scales) {
  const auto fan_in = static_cast<std::size_t>(unit.fan_in);
  const std::size_t step = fan_in * static_cast<std::size_t>(unit.blocks);
  Bits result = c;
  if (unit.operation == UnitOperation::ftz_add_mul) {
    const Operand o = decode(unit.output, c);
    if (o.kind == Kind::zero || o.subnormal) result = 0;
  }
  for (std::size_t begin = 0; begin < a.size(); begin += step) {
    const std::size_t count = std::min(step, a.size() - begin);
    // The k of each block, by the order that the row names; past the end, zeros.
    std::vector<std::vector<std::size_t>> blocks((count + fan_in - 1) / fan_in);
    if (unit.order == OperandOrder::pairs_of_four) {
      blocks.assign(2, {});
      for (std::size_t k = 0; k < 2 * fan_in; ++k) blocks[k % 4 / 2].push_back(begin + k);
    } else {
      for (std::size_t k = 0; k < blocks.size() * fan_in; k += fan_in) {
        for (std::size_t i = 0; i < fan_in; ++i) blocks[k / fan_in].push_back(begin + k + i);
        if (unit.order == OperandOrder::odd_before_even) {
          std::swap(blocks[k / fan_in][0], blocks[k / fan_in][1]);
        }
      }
    }
    const bool last = unit.addend == Addend::last;
    std::vector<Bits> sums(static_cast<std::size_t>(unit.accumulators), 0);
    sums[0] = last ? 0 : result;
    std::size_t taken = 0;
    for (const std::vector<std::size_t>& ks : blocks) {
      Block block;
      for (const std::size_t k : ks) {
        const bool inside = k < begin + count;
        block.a.push_back(input(unit, inside ? a[k] : 0));
        block.b.push_back(input(unit, inside ? b[k] : 0));
        block.products.push_back(product(block.a.back(), block.b.back()));
        if (unit.scale_block == 0) continue;
        const std::size_t s =
            std::min(k, begin + count - 1) / static_cast<std::size_t>(unit.scale_block);
        block.a_scales.push_back(number(unit.scale, a_scales[s]));
        block.b_scales.push_back(number(unit.scale, b_scales[s]));
      }
      if (unit.operation != UnitOperation::fma) {
        sums[0] = block_result(unit, block, sums[0]);
        continue;
      }
      for (std::size_t i = 0; i < ks.size(); ++i, ++taken) {
        Bits& sum = sums[taken % sums.size()];
        sum = fma(unit, block.a[i], block.b[i], sum);
      }
    }
    Bits sum = sums[0];
    for (std::size_t i = 1; i < sums.size(); ++i) sum = add(unit, sum, sums[i]);
    result = last ? add(unit, result, sum) : sum;
  }
  return result;
}

Bits exact_dot_rounded(const MatrixUnit& unit, std::span<const Bits> a, std::span<const Bits> b,
                       Bits c) {
  Integer sum = number(unit.output, c).value;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += product(input(unit, a[k]), input(unit, b[k])).value;
  }
  return converted(unit, sum);
}

}  // namespace kvsim::oracle
