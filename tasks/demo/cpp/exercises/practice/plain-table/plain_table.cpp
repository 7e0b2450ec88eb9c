#include "plain_table.h"

#include <stdexcept>

namespace plain_table {

std::string render(const std::vector<Row>& /* rows */, const std::vector<Align>& /* columns */) {
    throw std::logic_error("Write the function render");
}

std::vector<Align> guess(const std::vector<Row>& /* rows */) {
    throw std::logic_error("Write the function guess");
}

}  // namespace plain_table
