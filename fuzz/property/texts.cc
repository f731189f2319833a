// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/property/draw.h"
#include "fuzz/property/groups.h"
#include "model/safetensors.h"
#include "model/safetensors_writer.h"
#include "model/token_encoder.h"
#include "model/tokenizer.h"
#include "model/tokenizer_writer.h"
#include "run/arm.h"
#include "run/record.h"
#include "run/record_reader.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim::fuzz {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// Letters, digits and '-'.
std::string draw_word(Random& random) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::string word;
  for (std::int64_t i = random.between(1, 8); i > 0; --i) {
    word += letters[static_cast<std::size_t>(random.below(std::ssize(letters)))];
  }
  return word;
}

/// Characters of one to four bytes, control characters and quotes among them.
std::string draw_text(Random& random) {
  std::string text;
  for (std::int64_t i = random.between(0, 24); i > 0; --i) {
    constexpr auto others = std::to_array<std::string_view>(
        {"\n", " ", "  ", "\"", "\\", "\t", "ä", "€", "字", "🙂", "\u00ad", "Ω"});
    if (random.once_in(2)) {
      text += static_cast<char>(random.between(' ', '~'));
    } else {
      text += one_of(random, std::span<const std::string_view>(others));
    }
  }
  return text;
}

Violation numbers_read_back(PropertyInput& input) {
  constexpr int cases = 12;
  for (int i = 0; i < cases; ++i) {
    const softfloat::NamedFormat& row = one_of(input.random, softfloat::formats());
    const Format& format = row.format;
    const Bits code = draw_code(input.random, format);
    if (softfloat::is_nan(format, code)) continue;
    for (const std::string& text :
         {softfloat::to_decimal(format, code), softfloat::to_exact_decimal(format, code),
          softfloat::to_hex_float(format, code), softfloat::to_bits_text(format, code)}) {
      const auto read = softfloat::parse_number(format, text);
      if (!read) return fmt::format("{}: {}", row.name, read.error().message);
      if (read->bits == code) continue;
      return fmt::format("{}: {} reads back as {}, not as {}", row.name, text,
                         softfloat::to_bits_text(format, read->bits),
                         softfloat::to_bits_text(format, code));
    }
  }
  return std::nullopt;
}

Violation texts_round_once(PropertyInput& input) {
  constexpr auto formats = std::to_array<Format>(
      {softfloat::binary16, softfloat::bfloat16, softfloat::binary32, softfloat::e4m3});
  constexpr int cases = 12;
  for (int i = 0; i < cases; ++i) {
    const Format& to = one_of(input.random, std::span<const Format>(formats));
    // The middle between two numbers, or next to it: only the last digit says on which side.
    const Bits below = draw_number(input.random, to, {.lowest = -6, .highest = 6});
    const double number = softfloat::to_double(to, below);
    double x = number + std::ldexp(0.5, std::ilogb(number) - to.trailing_bits());
    const std::int64_t side = input.random.between(-1, 2);
    if (side < 2) x = std::nextafter(x, static_cast<double>(side) * 1e9);
    std::string text = softfloat::to_exact_decimal(softfloat::binary64, softfloat::from_double(x));
    if (side == 2 && text.find('.') != std::string::npos && text.find('e') == std::string::npos) {
      // Beyond the middle by a digit that no binary64 number has.
      text += std::string(40, '0') + "1";
      x = std::nextafter(x, x < 0 ? -1e9 : 1e9);
    }
    const Bits expected =
        softfloat::convert(to, softfloat::binary64, softfloat::from_double(x)).bits;
    const auto read = softfloat::parse_number(to, text);
    if (!read) return read.error().message;
    if (read->bits == expected) continue;
    return fmt::format("{} in {} is read as {}, not as {}", text, softfloat::format_name(to),
                       code_text(to, read->bits), code_text(to, expected));
  }
  return std::nullopt;
}

Violation orders_read_back(PropertyInput& input) {
  constexpr int cases = 8;
  const Format& single = softfloat::binary32;
  for (int i = 0; i < cases; ++i) {
    const Order order = draw_order(
        input.random, 8,
        {.units = true, .rounded = true, .input = softfloat::binary16, .accumulator = single});
    const std::string text = kvsim::to_string(order);
    const auto read = parse_order(text);
    if (!read) return fmt::format("{}: {}", text, read.error().message);
    if (*read == order) continue;
    return fmt::format("{} reads back as {}", text, kvsim::to_string(*read));
  }
  return std::nullopt;
}

Violation units_read_back(PropertyInput& input) {
  MatrixUnit unit = one_of(input.random, matrix_units());
  std::string options;
  for (const UnitOption& option : unit.options) {
    options +=
        fmt::format("{}{}={}", options.empty() ? "" : ",", kvsim::to_string(option.parameter),
                    parameter_text(option.parameter, one_of(input.random, option.accepted)));
  }
  const std::string text =
      options.empty() ? std::string(unit.name) : fmt::format("{}({})", unit.name, options);
  const auto read = parse_matrix_unit(text);
  if (!read) return read.error().message;
  const std::string canonical = kvsim::to_string(*read);
  const auto again = parse_matrix_unit(canonical);
  if (!again) return again.error().message;
  for (const UnitOption& option : unit.options) {
    if (parameter_value(*read, option.parameter) == parameter_value(*again, option.parameter)) {
      continue;
    }
    return fmt::format("{}, printed as {}, loses its {}", text, canonical,
                       kvsim::to_string(option.parameter));
  }
  return std::nullopt;
}

Violation flip_cases_read_back(PropertyInput& input) {
  CaseShape shape;
  shape.kind = CaseKind::sum;
  shape.storage = input.random.once_in(2) ? softfloat::binary16 : softfloat::binary32;
  shape.accumulator = softfloat::binary32;
  shape.product = draw_product(input.random);
  shape.terms = input.random.between(1, 9);
  for (Order& order : shape.orders) {
    order = draw_order(input.random, shape.terms,
                       {.input = shape.storage, .accumulator = shape.accumulator});
  }
  FlipCase flip_case = empty_case(shape);
  for (const CaseTensor tensor : {CaseTensor::state, CaseTensor::tokens}) {
    for (float& x : flip_case[tensor]) {
      x = softfloat::to_float(shape.storage, draw_finite_code(input.random, shape.storage));
    }
  }
  const std::string text = to_text(flip_case);
  const auto read = parse_case(text);
  if (!read) return read.error().message;
  if (!(read->shape == shape)) return fmt::format("the shape does not read back: {}", text);
  for (const CaseTensor tensor : {CaseTensor::state, CaseTensor::tokens}) {
    const std::vector<float>& before = flip_case[tensor];
    for (std::size_t i = 0; i < before.size(); ++i) {
      const float after = (*read)[tensor][i];
      if (softfloat::from_float(after) == softfloat::from_float(before[i])) continue;
      return fmt::format("{} {} reads back as {:a}, not as {:a}", to_string(tensor), i, after,
                         before[i]);
    }
  }
  return std::nullopt;
}

double draw_finite_double(Random& random) {
  return softfloat::to_double(softfloat::binary64, draw_finite_code(random, softfloat::binary64));
}

Violation records_read_back(PropertyInput& input) {
  StepRecord step;
  step.prompt = input.random.below(1000);
  step.arm = draw_word(input.random);
  step.step = input.random.below(1000);
  step.token = input.random.below(50000);
  step.logprob = -std::fabs(draw_finite_double(input.random));
  for (std::int64_t i = input.random.below(4); i > 0; --i) {
    step.top.push_back({input.random.below(50000), draw_finite_double(input.random),
                        -std::fabs(draw_finite_double(input.random))});
  }
  step.digests.token = "0123456789abcdef";
  step.cost.multiply_adds = input.random.below(std::int64_t{1} << 30);
  std::string line = to_line(step);
  line.pop_back();
  const auto read = parse_record_line(line);
  if (!read) return read.error().message;
  const std::string again = to_line(*read);
  const auto* const other = std::get_if<StepRecord>(&*read);
  if (other == nullptr || !(*other == step) || again != line + "\n") {
    return fmt::format("a record reads back as another one: {}", line);
  }
  return std::nullopt;
}

Violation tensors_read_back(PropertyInput& input) {
  std::vector<std::vector<std::byte>> data;
  std::vector<Tensor> tensors;
  const std::int64_t count = input.random.between(1, 4);
  data.reserve(static_cast<std::size_t>(count));
  tensors.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Tensor tensor;
    tensor.name = draw_text(input.random) + fmt::to_string(i);
    tensor.dtype = input.random.once_in(2) ? Dtype::f32 : Dtype::bf16;
    std::int64_t bytes = tensor.dtype == Dtype::f32 ? 4 : 2;
    for (std::int64_t k = input.random.below(4); k > 0; --k) {
      tensor.shape.push_back(input.random.between(1, 4));
      bytes *= tensor.shape.back();
    }
    std::vector<std::byte> content(static_cast<std::size_t>(bytes));
    for (std::byte& byte : content) byte = static_cast<std::byte>(input.random.below(256));
    data.push_back(std::move(content));
    tensor.bytes = data.back();
    tensors.push_back(std::move(tensor));
  }
  const std::vector<MetadataEntry> metadata{{draw_word(input.random), draw_text(input.random)}};
  auto prefix = safetensors_prefix(tensors, metadata);
  if (!prefix) return prefix.error().message;
  std::vector<std::byte> file;
  for (const char c : *prefix) file.push_back(static_cast<std::byte>(c));
  for (const std::vector<std::byte>& content : data) {
    file.insert(file.end(), content.begin(), content.end());
  }
  const auto read = SafetensorsFile::parse(file);
  if (!read) return read.error().message;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor* const other = read->find(tensors[i].name);
    if (other != nullptr && other->dtype == tensors[i].dtype && other->shape == tensors[i].shape &&
        std::ranges::equal(other->bytes, tensors[i].bytes)) {
      continue;
    }
    return fmt::format("tensor {} of shape {} does not read back", i, shape_text(tensors[i].shape));
  }
  if (read->metadata().size() == 1 && read->metadata()[0].key == metadata[0].key &&
      read->metadata()[0].text == metadata[0].text) {
    return std::nullopt;
  }
  return "the metadata does not read back";
}

Violation arms_read_back(PropertyInput& input) {
  Arm arm;
  arm.constructor = static_cast<CacheConstructor>(input.random.below(8));
  if (arm.constructor == CacheConstructor::chunked ||
      arm.constructor == CacheConstructor::aligned_chunk ||
      arm.constructor == CacheConstructor::prefix_hit) {
    arm.rows = input.random.between(1, 100);
  }
  if (arm.constructor == CacheConstructor::prefix_hit) arm.block = input.random.between(1, 32);
  for (std::int64_t i = input.random.below(3); i > 0; --i) {
    arm.settings.insert(arm.settings.begin(),
                        {fmt::format("{}{}", i, draw_word(input.random)), draw_word(input.random)});
  }
  arm.label = input.random.once_in(2) ? kvsim::to_text(arm) : draw_word(input.random);
  const std::string text = to_text_with_label(arm);
  const auto read = parse_arm(text);
  if (!read) return fmt::format("{}: {}", text, read.error().message);
  if (*read == arm) return std::nullopt;
  return fmt::format("{} reads back as {}", text, to_text_with_label(*read));
}

/// A byte-level vocabulary of all bytes and some merges, as a tokenizer.json.
Result<Tokenizer> draw_tokenizer(Random& random) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_level_bpe;
  vocabulary.space_prefix = false;
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocabulary.pieces.push_back({.text = byte_level_spelling(static_cast<unsigned char>(byte))});
  }
  for (std::int64_t i = random.between(0, 20); i > 0; --i) {
    const std::string left = one_of(random, std::span<const Piece>(vocabulary.pieces)).text;
    const std::string right = one_of(random, std::span<const Piece>(vocabulary.pieces)).text;
    const bool known = std::ranges::any_of(
        vocabulary.pieces, [&](const Piece& piece) { return piece.text == left + right; });
    if (known) continue;
    vocabulary.pieces.push_back({.text = left + right});
    vocabulary.merges.emplace_back(left, right);
  }
  const auto json = tokenizer_json(vocabulary);
  if (!json) return json.error();
  return Tokenizer::parse(std::as_bytes(std::span(*json)), "tokenizer.json");
}

Violation tokens_decode_to_their_text(PropertyInput& input) {
  const auto tokenizer = draw_tokenizer(input.random);
  if (!tokenizer) return tokenizer.error().message;
  constexpr int cases = 4;
  for (int i = 0; i < cases; ++i) {
    const std::string text = draw_text(input.random);
    const auto ids = tokenizer->encode(text);
    if (!ids) return ids.error().message;
    const auto decoded = tokenizer->decode(*ids);
    if (!decoded) return decoded.error().message;
    if (*decoded == text) continue;
    return fmt::format("a text of {} bytes comes back with {} other bytes", text.size(),
                       decoded->size());
  }
  return std::nullopt;
}

constexpr auto table = std::to_array<Property>({
    {"numbers-read-back", "what prints a number in any format and notation reads back to its code",
     "softfloat/text.h", numbers_read_back},
    {"texts-round-once", "a decimal near the middle of two numbers is read as the nearer one",
     "IEEE 754-2019, clause 5.12", texts_round_once},
    {"orders-read-back", "the text of an order reads back as the order", "docs/orders.md",
     orders_read_back},
    {"units-read-back", "the text of a matrix unit with options reads back as the unit",
     "docs/units.md", units_read_back},
    {"flip-cases-read-back", "the text of a flip case reads back bit for bit", "docs/fuzzing.md",
     flip_cases_read_back},
    {"records-read-back", "a record's line reads back as the record", "docs/run.md",
     records_read_back},
    {"tensors-read-back", "a written safetensors file has the tensors that went into it",
     "https://github.com/huggingface/safetensors", tensors_read_back},
    {"arms-read-back", "the text of an arm reads back as the arm", "docs/run.md", arms_read_back},
    {"tokens-decode-to-their-text", "a byte-level tokenizer gives every text back",
     "every byte has a token", tokens_decode_to_their_text},
});

}  // namespace

std::span<const Property> text_properties() { return table; }

}  // namespace kvsim::fuzz
