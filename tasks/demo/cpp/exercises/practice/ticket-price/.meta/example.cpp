#include "ticket_price.h"

#include <stdexcept>

namespace ticket_price {

int price(int age) {
    if (age < 0) {
        throw std::invalid_argument("age must not be negative");
    }
    if (age < 6) {
        return 0;
    }
    if (age < 18) {
        return 4;
    }
    return age < 65 ? 10 : 7;
}

}  // namespace ticket_price
