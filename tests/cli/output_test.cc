// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// One report in its three forms.
#include "cli/output.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "cli/build_info.h"

namespace kvsim {
namespace {

Report sample() {
  Table table;
  table.title = "Sizes:";
  table.columns = {{"name", "name", "", Align::left}, {"size", "size", "bits", Align::right}};
  table.rows = {{Cell("é|x"), Cell("8", Json(8))}, {Cell("long name"), Cell("-", Json())}};
  table.notes = {"a note"};
  Report report;
  report.schema = "kvsim.sample/1";
  report.command = "sample";
  report.headline = "Two rows.";
  report.input = Json::object();
  report.result = rows_as_json(table);
  report.tables = {table};
  return report;
}

TEST(Render, TextIsAlignedByCharacters) {
  EXPECT_EQ(render(sample(), OutputForm::text),
            "Two rows.\n"
            "\n"
            "Sizes:\n"
            "name       size (bits)\n"
            "---------  -----------\n"
            "é|x                  8\n"
            "long name            -\n"
            "a note\n");
}

TEST(Render, MarkdownEscapesWhatEndsACell) {
  EXPECT_EQ(render(sample(), OutputForm::markdown),
            "Two rows.\n"
            "\n"
            "**Sizes:**\n"
            "\n"
            "| name | size (bits) |\n"
            "|---|--:|\n"
            "| é\\|x | 8 |\n"
            "| long name | - |\n"
            "\n"
            "a note\n");
}

TEST(Render, JsonKeepsTheOrderOfMembers) {
  EXPECT_EQ(render(sample(), OutputForm::json),
            "{\n"
            "  \"schema\": \"kvsim.sample/1\",\n"
            "  \"command\": \"sample\",\n"
            "  \"version\": \"" +
                std::string(build_info::version()) +
                "\",\n"
                "  \"input\": {},\n"
                "  \"result\": [\n"
                "    {\n"
                "      \"name\": \"é|x\",\n"
                "      \"size\": 8\n"
                "    },\n"
                "    {\n"
                "      \"name\": \"long name\",\n"
                "      \"size\": null\n"
                "    }\n"
                "  ]\n"
                "}\n");
}

TEST(Render, NumbersThatJsonLacksAreStrings) {
  EXPECT_EQ(json_number(0.25), Json(0.25));
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), Json("inf"));
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), Json("-inf"));
  EXPECT_EQ(json_number(std::nan("")), Json("nan"));
}

TEST(WithColumns, ChoosesAndReorders) {
  constexpr std::array<std::string_view, 3> keys{"size", "missing", "name"};
  const Table table = with_columns(sample().tables.front(), keys);
  ASSERT_EQ(table.columns.size(), 2U);
  EXPECT_EQ(table.columns[0].key, "size");
  EXPECT_EQ(table.rows[1][1].text, "long name");
}

}  // namespace
}  // namespace kvsim
