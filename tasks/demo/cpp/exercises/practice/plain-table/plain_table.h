#pragma once

#include <string>
#include <vector>

namespace plain_table {

using Row = std::vector<std::string>;

enum class Align { left, right };

std::string render(const std::vector<Row>& rows, const std::vector<Align>& columns);

std::vector<Align> guess(const std::vector<Row>& rows);

}  // namespace plain_table
