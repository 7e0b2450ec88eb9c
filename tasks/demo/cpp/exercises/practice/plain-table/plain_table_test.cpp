#include "plain_table.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "test/catch.hpp"

using plain_table::Align;
using plain_table::guess;
using plain_table::render;
using plain_table::Row;

TEST_CASE("columns are as wide as their longest cell", "[render]") {
    const std::vector<Row> rows = {{"fruit", "colour"}, {"apples", "red"}, {"figs", "deep purple"}};
    REQUIRE(render(rows, {Align::left, Align::left}) ==
            "fruit   colour\n"
            "------  -----------\n"
            "apples  red\n"
            "figs    deep purple\n");
}

#if defined(EXERCISM_RUN_ALL_TESTS)

namespace {

std::string refusal(const std::vector<Row>& rows, const std::vector<Align>& columns) {
    try {
        return "not refused: " + render(rows, columns);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("columns can be aligned to the right", "[render]") {
    const std::vector<Row> rows = {{"fruit", "kg", "from"}, {"apples", "2.5", "Kent"}, {"figs", "10", "Crete"}};
    REQUIRE(render(rows, {Align::right, Align::right, Align::left}) ==
            " fruit   kg  from\n"
            "------  ---  -----\n"
            "apples  2.5  Kent\n"
            "  figs   10  Crete\n");
}

TEST_CASE("columns are at least three wide", "[render]") {
    REQUIRE(render({{"a", "b"}, {"1", ""}}, {Align::left, Align::right}) ==
            "a      b\n"
            "---  ---\n"
            "1\n");
}

TEST_CASE("a heading without rows and no rows at all", "[render]") {
    CHECK(render({{"name", "age"}}, {Align::left, Align::left}) == "name  age\n----  ---\n");
    CHECK(render({}, {Align::left, Align::left}) == "");
}

TEST_CASE("a row of empty cells is an empty line", "[render]") {
    REQUIRE(render({{"x", "y"}, {"", ""}, {"p", "q"}}, {Align::right, Align::left}) ==
            "  x  y\n"
            "---  ---\n"
            "\n"
            "  p  q\n");
}

TEST_CASE("rows which are too short or too long are refused", "[render]") {
    REQUIRE_THROWS_AS(render({{"a", "b"}, {"c"}}, {Align::left, Align::left}), std::invalid_argument);
    CHECK(refusal({{"a", "b"}, {"c"}}, {Align::left, Align::left}) == "row 2 has 1 cells, expected 2");
    CHECK(refusal({{"a", "b"}}, {Align::left}) == "row 1 has 2 cells, expected 1");
}

TEST_CASE("line breaks are refused", "[render]") {
    CHECK(refusal({{"a"}, {"b"}, {"c\n"}}, {Align::left}) == "row 3 has a line break");
    CHECK(refusal({{"a\nb"}, {"c", "d"}}, {Align::left}) == "row 1 has a line break");
    CHECK(refusal({{"a"}, {"c\n", "d"}}, {Align::left}) == "row 2 has 2 cells, expected 1");
}

TEST_CASE("columns of numbers are aligned to the right", "[guess]") {
    const std::vector<Row> rows = {{"1", "kg", "id"}, {"a", "2.5", "-7"}, {"b", "10", "007"}};
    const std::vector<Align> expected = {Align::left, Align::right, Align::right};
    REQUIRE((guess(rows) == expected));
}

TEST_CASE("what only looks like a number is text", "[guess]") {
    for (const std::string cell : {"", "-", "1.", ".5", "1.2.3", "+1", " 1", "1e5", "--1"}) {
        const std::vector<Align> columns = guess({{"kg"}, {"1"}, {cell}});
        REQUIRE(columns.size() == std::size_t{1});
        CHECK(columns[0] == Align::left);
    }
}

TEST_CASE("without rows there is nothing to guess from", "[guess]") {
    CHECK(guess({}).empty());
    const std::vector<Align> columns = guess({{"12", "kg"}});
    REQUIRE(columns.size() == std::size_t{2});
    REQUIRE_FALSE(columns[0] == Align::right);
    REQUIRE_FALSE(columns[1] == Align::right);
}

#endif  // EXERCISM_RUN_ALL_TESTS
