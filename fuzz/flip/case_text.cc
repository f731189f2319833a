// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "fuzz/flip/case.h"
#include "fuzz/flip/case_lines.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"
#include "softfloat/mutants.h"
#include "softfloat/sha256.h"
#include "softfloat/text.h"

namespace kvsim::fuzz {
namespace {

constexpr std::array<std::string_view, 2> head_keys{"on-head", "off-head"};
constexpr std::size_t longest_value = 40;  ///< characters of a number

std::string path_text(const CaseShape& shape, std::size_t path) {
  if (shape.kind == CaseKind::sum) return to_string(shape.orders[path]);
  const KernelPath& kernel = shape.kernels[path];
  std::string text = kernel.kernel + (kernel.prefill ? " prefill" : " decode");
  if (kernel.splits > 0) text += fmt::format(" splits {}", kernel.splits);
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lines_(text) {}

  Result<FlipCase> run() {
    const auto first = lines_.next();
    if (!first) return lines_.ends(first_case_line);
    if (*first != first_case_line) return lines_.wrong(*first, first_case_line);
    CaseShape shape;
    Result<bool> done = read_target(shape);
    if (done) done = read_kind(shape);
    if (!done) return done.error();
    done = shape.kind == CaseKind::sum ? read_sum(shape) : read_attention(shape);
    if (!done) return done.error();
    done = check_shape(shape);
    if (!done) return lines_.here(done.error());
    FlipCase flip_case = empty_case(shape);
    done = lines_.read_floor(flip_case.floor);
    if (!done) return done.error();
    for (std::size_t t = 0; t < case_tensors; ++t) {
      done = read_tensor(static_cast<CaseTensor>(t), flip_case);
      if (!done) return done.error();
    }
    const auto last = lines_.next();
    if (!last) return lines_.ends("end");
    if (*last != "end") return lines_.wrong(*last, "end");
    const auto behind = lines_.next();
    if (behind) return lines_.wrong(*behind, "nothing");
    return flip_case;
  }

 private:
  Result<bool> read_integer(std::string_view key, std::int64_t& value) {
    const auto text = lines_.value_of(key);
    if (!text) return text.error();
    return to_integer(*text, value);
  }

  Result<bool> to_integer(std::string_view text, std::int64_t& value) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size()) {
      return lines_.wrong(text, fmt::format("a number up to {}", most_case_size));
    }
    return true;
  }

  Result<bool> read_format(std::string_view key, softfloat::Format& format) {
    const auto text = lines_.value_of(key);
    if (!text) return text.error();
    const softfloat::NamedFormat* const named = softfloat::find_format(*text);
    if (named == nullptr) return lines_.wrong(*text, "the name of a format, such as fp16,");
    format = named->format;
    return true;
  }

  /// Cases of flips have no line for their target.
  Result<bool> read_target(CaseShape& shape) {
    if (!lines_.next_is("target ")) return true;
    const auto name = lines_.value_of("target");
    if (!name) return name.error();
    const auto target = find_target(*name);
    if (!target) return lines_.wrong(*name, fmt::format("{}", fmt::join(target_names, ", ")));
    shape.target = *target;
    return true;
  }

  Result<bool> read_kind(CaseShape& shape) {
    const auto kind = lines_.value_of("kind");
    if (!kind) return kind.error();
    if (*kind != "sum" && *kind != "attention") return lines_.wrong(*kind, "sum or attention");
    shape.kind = *kind == "sum" ? CaseKind::sum : CaseKind::attention;
    return read_format("storage", shape.storage);
  }

  Result<bool> read_sum(CaseShape& shape) {
    Result<bool> done = read_format("accumulate", shape.accumulator);
    if (!done) return done;
    const auto product = lines_.value_of("product");
    if (!product) return product.error();
    const auto rule = parse_product(*product);
    if (!rule) return lines_.here(rule.error());
    shape.product = *rule;
    done = read_integer("terms", shape.terms);
    if (!done) return done;
    for (const std::size_t path : {path_on, path_off}) {
      const auto text = lines_.value_of(path == path_on ? "on" : "off");
      if (!text) return text.error();
      Result<Order> order = parse_order(*text);
      if (!order) return lines_.here(order.error());
      shape.orders[path] = *std::move(order);
    }
    return true;
  }

  Result<bool> read_attention(CaseShape& shape) {
    AttentionShape& sizes = shape.attention;
    Result<bool> done = read_integer("query-heads", sizes.query_heads);
    if (done) done = read_integer("kv-heads", sizes.kv_heads);
    if (done) done = read_integer("head-dim", sizes.head_dim);
    if (done) done = read_integer("kv-len", sizes.kv_len);
    for (const std::size_t path : {path_on, path_off}) {
      if (done) done = read_path(path == path_on ? "on" : "off", shape.kernels[path]);
    }
    for (const std::size_t path : {path_on, path_off}) {
      if (done) done = read_head(head_keys[path], shape.kernels[path]);
    }
    return done;
  }

  Result<bool> read_path(std::string_view key, KernelPath& path) {
    const auto text = lines_.value_of(key);
    if (!text) return text.error();
    std::string_view rest = *text;
    path.kernel = next_word(rest);
    const std::string_view how = next_word(rest);
    if (how != "decode" && how != "prefill") {
      return lines_.wrong(*text, "KERNEL decode|prefill [splits N]");
    }
    path.prefill = how == "prefill";
    const std::string_view splits = next_word(rest);
    if (splits.empty()) return true;
    if (splits != "splits") return lines_.wrong(splits, "splits N");
    const std::string_view number = next_word(rest);
    Result<bool> done = to_integer(number, path.splits);
    if (!done) return done;
    if (!next_word(rest).empty()) return lines_.wrong(*text, "KERNEL decode|prefill [splits N]");
    return true;
  }

  /// Logits that are exact sums have no line.
  Result<bool> read_head(std::string_view key, KernelPath& path) {
    if (!lines_.next_is(fmt::format("{} ", key))) return true;
    const auto name = lines_.value_of(key);
    if (!name) return name.error();
    path.head = *name;
    return true;
  }

  Result<bool> read_tensor(CaseTensor tensor, FlipCase& flip_case) {
    const std::int64_t size = tensor_size(flip_case.shape, tensor);
    if (size == 0) return true;
    const auto name = lines_.next();
    if (!name) return lines_.ends(to_string(tensor));
    if (*name != to_string(tensor)) return lines_.wrong(*name, to_string(tensor));
    const std::int64_t columns = tensor_columns(flip_case.shape, tensor);
    std::vector<float>& values = flip_case[tensor];
    for (std::int64_t row = 0; row < size / columns; ++row) {
      const std::string accepted =
          fmt::format("a row of {} numbers of {}", columns, to_string(tensor));
      const auto line = lines_.next();
      if (!line) return lines_.ends(accepted);
      std::string_view rest = *line;
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::string_view word = next_word(rest);
        if (word.empty()) return lines_.wrong(*line, accepted);
        const Result<float> value = number(flip_case.shape.storage, word);
        if (!value) return value.error();
        values[static_cast<std::size_t>(row * columns + i)] = *value;
      }
      if (!next_word(rest).empty()) return lines_.wrong(*line, accepted);
    }
    return true;
  }

  Result<float> number(const softfloat::Format& format, std::string_view word) {
    const std::string accepted =
        fmt::format("a finite number of {}, such as 0x1.8p-3,", softfloat::format_name(format));
    if (word.size() > longest_value) return lines_.wrong(word, accepted);
    const auto wide = softfloat::parse_number(softfloat::binary64, word);
    if (!wide || wide->flags.inexact || wide->flags.overflow) return lines_.wrong(word, accepted);
    const auto code = softfloat::convert(format, softfloat::binary64, wide->bits);
    const double value = softfloat::to_double(softfloat::binary64, wide->bits);
    if (!std::isfinite(value) || softfloat::to_double(format, code.bits) != value) {
      return lines_.wrong(word, accepted);
    }
    return static_cast<float>(value);
  }

  CaseLines lines_;
};

}  // namespace

std::string to_text(const FlipCase& flip_case) {
  const CaseShape& shape = flip_case.shape;
  std::string out = fmt::format("{}\n", first_case_line);
  if (shape.target != Target::flip) out += fmt::format("target {}\n", to_string(shape.target));
  out += fmt::format("kind {}\nstorage {}\n", shape.kind == CaseKind::sum ? "sum" : "attention",
                     softfloat::format_name(shape.storage));
  if (shape.kind == CaseKind::sum) {
    out += fmt::format("accumulate {}\nproduct {}\nterms {}\n",
                       softfloat::format_name(shape.accumulator), to_string(shape.product),
                       shape.terms);
  } else {
    const AttentionShape& sizes = shape.attention;
    out += fmt::format("query-heads {}\nkv-heads {}\nhead-dim {}\nkv-len {}\n", sizes.query_heads,
                       sizes.kv_heads, sizes.head_dim, sizes.kv_len);
  }
  out += fmt::format("on {}\noff {}\n", path_text(shape, path_on), path_text(shape, path_off));
  for (const std::size_t path : {path_on, path_off}) {
    const std::string& head = shape.kernels[path].head;
    if (!head.empty()) out += fmt::format("{} {}\n", head_keys[path], head);
  }
  out += floor_line(flip_case.floor);
  for (std::size_t t = 0; t < case_tensors; ++t) {
    const auto tensor = static_cast<CaseTensor>(t);
    const auto columns = static_cast<std::size_t>(tensor_columns(shape, tensor));
    const std::vector<float>& values = flip_case[tensor];
    if (values.empty()) continue;
    fmt::format_to(std::back_inserter(out), "{}\n", to_string(tensor));
    for (std::size_t i = 0; i < values.size(); ++i) {
      float value = values[i];
      if (value == 0 && mutant_is_on(Mutant::negative_zero_lost)) value = 0;
      out += softfloat::to_hex_float(softfloat::binary32, softfloat::from_float(value));
      out += (i + 1) % columns == 0 ? '\n' : ' ';
    }
  }
  return out + "end\n";
}

std::string case_file_name(const FlipCase& flip_case) {
  const std::string text = to_text(flip_case);
  return fmt::format("{}-{}.case", to_string(flip_case.shape.target),
                     sha256(std::as_bytes(std::span(text))).substr(0, 16));
}

Result<FlipCase> parse_case(std::string_view text) {
  if (text.size() > most_case_text) {
    return Error{ErrorKind::file,
                 fmt::format("{} bytes: a case has at most {}", text.size(), most_case_text)};
  }
  return Parser(text).run();
}

}  // namespace kvsim::fuzz
