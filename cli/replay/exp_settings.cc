// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/exp_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/printable.h"
#include "cli/replay/settings.h"
#include "model/safetensors.h"
#include "sim/compare.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

Result<std::vector<float>> read_table(const std::string& path) {
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file) return file.error();
  const Tensor* tensor = file->find("ex2");
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (tensor == nullptr || tensor->dtype != Dtype::f32 || tensor->shape.size() != 1 ||
      tensor->shape[0] > most) {
    const std::string found =
        tensor == nullptr
            ? std::string("no tensor ex2")
            : fmt::format("ex2 {} {}", dtype_info(tensor->dtype).name, shape_text(tensor->shape));
    return Error{ErrorKind::usage,
                 fmt::format("{}: the --exp-table has {}; ex2 F32 [n] with n a power of two from 2 "
                             "to {} is accepted",
                             printable(path), found, most)};
  }
  return decode_values(softfloat::binary32, tensor->bytes);
}

}  // namespace

Result<ExpSettings> ExpSettings::from(const ParsedOptions& options) {
  ExpSettings out;
  const Result<std::optional<float>> ulp =
      float_option(options, "--exp-ulp", 0, static_cast<float>(max_exp_ulp));
  if (!ulp) return ulp.error();
  out.ulp_ = ulp->value_or(0);
  const std::optional<std::string> path = options.value("--exp-table");
  if (!path) return out;
  if (out.ulp_ > 0) {
    return Error{ErrorKind::usage,
                 "--exp-table and --exp-ulp are both given; one of them is accepted, since a table "
                 "leaves no error to try"};
  }
  Result<std::vector<float>> values = read_table(*path);
  if (!values) return values.error();
  out.values_ = std::move(*values);
  out.table_path_ = *path;
  const Result<ExpTable> table = make_exp_table(out.values_);
  if (!table) {
    return Error{table.error().kind,
                 fmt::format("{}: {}", printable(*path), table.error().message)};
  }
  out.table_.fraction_bits = table->fraction_bits;
  return out;
}

void ExpSettings::describe(Json& input) const {
  if (!table_path_.empty()) input["exp_table"] = printable(table_path_, table_path_.size());
  if (ulp_ > 0) input["exp_ulp"] = json_number(ulp_);
}

std::optional<ExpTable> ExpSettings::table() const {
  if (table_path_.empty()) return std::nullopt;
  ExpTable table = table_;
  table.values = values_;
  return table;
}

Result<bool> ExpSettings::fill(ReplayOutput& output, const softfloat::Format& format,
                               const std::function<Result<Values>(const ExpOptions&)>& run) const {
  // The table's span follows the object, which may have been moved since it was read.
  const std::optional<ExpTable> given = table();
  ExpOptions base;
  if (given) base.table = &*given;
  Result<Values> first = run(base);
  if (!first) return first.error();
  output.format = format;
  output.bytes = encode_values(format, first->values);
  output.log_sums = std::move(first->log_sums);
  output.exp = first->exp;
  if (output.exp != ExpKnowledge::bounded || ulp_ == 0) return true;
  ExpBand band;
  band.ulp = ulp_;
  band.reruns = reruns;
  for (std::int64_t seed = 1; seed <= reruns; ++seed) {
    const Result<Values> moved = run({nullptr, ulp_, static_cast<std::uint64_t>(seed)});
    if (!moved) return moved.error();
    const Comparison comparison =
        compare_codes(format, output.bytes, encode_values(format, moved->values));
    band.different = std::max(band.different, comparison.different);
    band.max_ulp = std::max(band.max_ulp, comparison.max_ulp);
  }
  output.band = band;
  return true;
}

}  // namespace kvsim
