// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cli/fuzz/case_report.h"
#include "cli/printable.h"
#include "fuzz/flip/case.h"

namespace kvsim {
namespace {

constexpr std::size_t shown_characters = 240;

Json input_json(const fuzz::ModelScorer& scorer) {
  Json input = Json::object();
  input["target"] = "flip";
  input["kind"] = "model";
  input["storage"] = scorer.engine().storage();
  input["model"] = printable(scorer.engine().model());
  input["model_sha256"] = scorer.engine().model_sha256();
  input["on"] = to_text(scorer.arms()[fuzz::path_on]);
  input["off"] = to_text(scorer.arms()[fuzz::path_off]);
  return input;
}

Table settings(const fuzz::ModelScorer& scorer) {
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  table.rows = {{"model", fmt::format("{} (sha256 {}…)", printable(scorer.engine().model()),
                                      scorer.engine().model_sha256().substr(0, 16))},
                {"storage", scorer.engine().storage()},
                {"on", to_text(scorer.arms()[fuzz::path_on])},
                {"off", to_text(scorer.arms()[fuzz::path_off])}};
  return table;
}

Table paths(const fuzz::ModelFlip& flip, const TokenText& text) {
  Table table;
  table.columns = {{"path", "path", "", Align::left},
                   {"difference", "on's token - off's", "logits", Align::right},
                   {"error", "largest error", "logits", Align::right},
                   {"token", "token", "", Align::left}};
  const auto row = [&](std::string_view name, double difference, double error, std::int64_t token) {
    table.rows.push_back({name, Cell(number(difference), json_number(difference)),
                          Cell(number(error), json_number(error)),
                          Cell(text.one(token), Json(token))});
  };
  const std::int64_t exact = flip.tokens[flip.exact >= 0 ? fuzz::path_on : fuzz::path_off];
  row("binary64", flip.exact, flip.judge_error, exact);
  row("on", flip.differences[fuzz::path_on], flip.largest_error[fuzz::path_on],
      flip.tokens[fuzz::path_on]);
  row("off", flip.differences[fuzz::path_off], flip.largest_error[fuzz::path_off],
      flip.tokens[fuzz::path_off]);
  table.notes = {
      "largest error: of any logit, from the same model in binary64, as observed; of binary64 an "
      "estimate (docs/fuzzing.md)"};
  return table;
}

/// The prompt, and what both arms were fed behind it.
Table texts(const fuzz::ModelFlip& flip, const TokenText& text) {
  const std::vector<TokenId>& ids = flip.flip_case.ids;
  const auto split = ids.begin() + flip.flip_case.prompt_tokens;
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  table.rows = {{"prompt", text.all({ids.begin(), split}, shown_characters)},
                {"then", split == ids.end() ? std::string("(nothing)")
                                            : text.all({split, ids.end()}, shown_characters)},
                {"step", fmt::format("{}, behind {} tokens of the prompt", ids.end() - split,
                                     flip.flip_case.prompt_tokens)}};
  return table;
}

std::string sentence(const fuzz::ModelFlip& flip, const TokenText& text) {
  return fmt::format(
      "A flip: on chooses {}, off {}, although their logits are {} apart in binary64: {} of twice "
      "the largest errors of a logit that are observed in both arms",
      text.one(flip.tokens[fuzz::path_on]), text.one(flip.tokens[fuzz::path_off]),
      number(flip.margin()), ratio(flip.ratio()));
}

void add_flip(Json& result, const fuzz::ModelFlip& flip, const Table& rows) {
  result["value"] = json_number(flip.ratio());
  result["margin"] = json_number(flip.margin());
  result["unit_logits"] = json_number(flip.unit());
  result["step"] = std::ssize(flip.flip_case.ids) - flip.flip_case.prompt_tokens;
  result["prompt_tokens"] = flip.flip_case.prompt_tokens;
  result["paths"] = rows_as_json(rows);
}

constexpr std::string_view unit = "of twice the observed errors of both arms";

}  // namespace

Report model_flip_report(const ModelFlipSetting& setting, const fuzz::ModelScorer& scorer,
                         const fuzz::ModelSearch& search, const TokenText& text) {
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz flip";
  report.input = input_json(scorer);
  report.input["prompts"] = setting.prompts;
  report.input["max_new_tokens"] = scorer.max_new_tokens();
  report.input["seed"] = setting.limits.seed;
  report.input["islands"] = setting.limits.islands;
  report.input["runs"] = search.runs();
  Table table = settings(scorer);
  table.rows.push_back({"prompts", setting.prompts});
  table.rows.push_back({"tokens", fmt::format("{} behind each prompt, as on chooses them",
                                              scorer.max_new_tokens())});
  table.rows.push_back({"search", fmt::format("{} runs on {} islands, seed {}", search.runs(),
                                              setting.limits.islands, setting.limits.seed)});
  report.tables.push_back(std::move(table));
  std::int64_t plain_runs = 0;
  std::int64_t plain_finds = 0;
  double plain_ratio = 0;
  for (const fuzz::ModelIsland& island : search.islands()) {
    plain_runs += island.plain_runs;
    plain_finds += island.plain_finds;
    plain_ratio = std::max(plain_ratio, island.plain_ratio);
  }
  const std::string plain =
      fmt::format("; of {} runs with a prompt as it was given {} flip, at most {}", plain_runs,
                  plain_finds, ratio(plain_ratio));
  const fuzz::ModelFlip* const best = search.best();
  Json result = Json::object();
  result["found"] = best != nullptr;
  result["unit"] = unit;
  if (best == nullptr) {
    report.headline = fmt::format(
        "No flip in {} runs: both arms chose the same token at every step that was tried.",
        search.runs());
    for (const char* const key :
         {"value", "margin", "unit_logits", "step", "prompt_tokens", "paths"}) {
      result[key] = nullptr;
    }
  } else {
    report.headline = sentence(*best, text) + plain + ".";
    Table rows = paths(*best, text);
    add_flip(result, *best, rows);
    report.tables.push_back(std::move(rows));
    report.tables.push_back(texts(*best, text));
    if (!setting.file.empty()) {
      report.tables.back().notes.push_back(
          fmt::format("the case: {} (kvsim fuzz replay FILE)", printable(setting.file)));
    }
  }
  result["plain_runs"] = plain_runs;
  result["plain_finds"] = plain_finds;
  result["plain_value"] = plain_finds > 0 ? json_number(plain_ratio) : Json();
  result["case"] = best == nullptr ? Json() : Json(fuzz::to_text(best->flip_case));
  report.result = std::move(result);
  return report;
}

Report model_replay_report(const std::string& file, const fuzz::ModelScorer& scorer,
                           const fuzz::ModelFlip& flip, const TokenText& text) {
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz replay";
  report.input = input_json(scorer);
  report.input["file"] = file;
  report.headline = flip.holds()
                        ? sentence(flip, text) + "."
                        : fmt::format(
                              "No flip: on chooses {}, off {}; their logits are {} apart in "
                              "binary64.",
                              text.one(flip.tokens[fuzz::path_on]),
                              text.one(flip.tokens[fuzz::path_off]), number(flip.margin()));
  report.tables.push_back(settings(scorer));
  Table rows = paths(flip, text);
  Json result = Json::object();
  result["found"] = flip.holds();
  result["unit"] = unit;
  add_flip(result, flip, rows);
  report.tables.push_back(std::move(rows));
  report.tables.push_back(texts(flip, text));
  report.result = std::move(result);
  return report;
}

Report model_shrink_report(const std::string& file, const std::string& out,
                           const fuzz::ModelScorer& scorer, const fuzz::ShrunkModelCase& shrunk,
                           const TokenText& text) {
  const fuzz::ModelFlip& flip = shrunk.flip;
  Report report;
  report.schema = "kvsim.fuzz/1";
  report.command = "fuzz shrink";
  report.input = input_json(scorer);
  report.input["file"] = printable(file);
  const auto tokens = [](const fuzz::ModelCaseSize& size) {
    return size.prompt_tokens + size.generated_tokens;
  };
  const bool same = tokens(shrunk.before) == tokens(shrunk.after) &&
                    shrunk.before.prompt_tokens == shrunk.after.prompt_tokens;
  report.headline = same ? "Nothing shorter: every step loses the flip, or too much of it."
                         : fmt::format("Shorter. {}.", sentence(flip, text));
  report.tables.push_back(settings(scorer));
  Table sizes;
  sizes.columns = {{"size", "size", "", Align::left},
                   {"before", "before", "", Align::right},
                   {"after", "after", "", Align::right}};
  const auto row = [&](std::string_view name, std::int64_t before, std::int64_t after) {
    sizes.rows.push_back({name, Cell(fmt::to_string(before), Json(before)),
                          Cell(fmt::to_string(after), Json(after))});
  };
  row("tokens of the prompt", shrunk.before.prompt_tokens, shrunk.after.prompt_tokens);
  row("tokens behind it", shrunk.before.generated_tokens, shrunk.after.generated_tokens);
  sizes.rows.push_back({fmt::format("claim, {}", unit), Cell(ratio(shrunk.value_before)),
                        Cell(ratio(flip.ratio()))});
  sizes.notes = {fmt::format("{} shorter cases were tried; the claim stays at least {}{}",
                             shrunk.tried, ratio(shrunk.floor),
                             shrunk.complete ? "" : "; the limit of cases was reached")};
  report.tables.push_back(std::move(sizes));
  report.tables.push_back(paths(flip, text));
  const auto size_json = [](const fuzz::ModelCaseSize& size) {
    Json json = Json::object();
    json["prompt_tokens"] = size.prompt_tokens;
    json["generated_tokens"] = size.generated_tokens;
    return json;
  };
  Json result = Json::object();
  result["before"] = size_json(shrunk.before);
  result["after"] = size_json(shrunk.after);
  result["value"] = json_number(flip.ratio());
  result["margin"] = json_number(flip.margin());
  result["unit_logits"] = json_number(flip.unit());
  result["floor"] = json_number(shrunk.floor);
  result["tried"] = shrunk.tried;
  result["complete"] = shrunk.complete;
  result["case"] = fuzz::to_text(flip.flip_case);
  report.result["shrunk"] = std::move(result);
  report.result["paths"] = rows_as_json(report.tables.back());
  report.tables.push_back(texts(flip, text));
  report.tables.back().notes.push_back(
      out.empty() ? std::string("no file was written: --out FILE writes the case")
                  : fmt::format("the case: {} (kvsim fuzz replay FILE)", printable(out)));
  return report;
}

}  // namespace kvsim
