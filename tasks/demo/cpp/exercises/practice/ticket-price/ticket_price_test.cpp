#include "ticket_price.h"

#include <stdexcept>

#include "test/catch.hpp"

TEST_CASE("small children pay nothing") {
    CHECK(ticket_price::price(0) == 0);
    CHECK(ticket_price::price(5) == 0);
}

TEST_CASE("older children pay a little") {
    CHECK(ticket_price::price(6) == 4);
    CHECK(ticket_price::price(17) == 4);
}

TEST_CASE("adults pay the full price") {
    CHECK(ticket_price::price(18) == 10);
    CHECK(ticket_price::price(64) == 10);
}

TEST_CASE("from 65 on there is a discount") {
    CHECK(ticket_price::price(65) == 7);
    CHECK(ticket_price::price(101) == 7);
}

TEST_CASE("a negative age is refused") {
    REQUIRE_THROWS_AS(ticket_price::price(-1), std::invalid_argument);
}
