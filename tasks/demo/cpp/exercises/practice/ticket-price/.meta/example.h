#pragma once

namespace ticket_price {

int price(int age);

}  // namespace ticket_price
