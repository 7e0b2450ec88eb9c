#include "plain_table.h"

#include <algorithm>
#include <regex>
#include <stdexcept>

namespace plain_table {

namespace {

void check(const std::vector<Row>& rows, std::size_t columns) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string place = "row " + std::to_string(i + 1);
        if (rows[i].size() != columns) {
            throw std::invalid_argument(place + " has " + std::to_string(rows[i].size()) + " cells, expected " +
                                        std::to_string(columns));
        }
        for (const std::string& cell : rows[i]) {
            if (cell.find('\n') != std::string::npos) {
                throw std::invalid_argument(place + " has a line break");
            }
        }
    }
}

std::string line(const Row& row, const std::vector<std::size_t>& widths, const std::vector<Align>& columns) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - row[i].size(), ' ');
        text += i == 0 ? "" : "  ";
        text += columns[i] == Align::left ? row[i] + padding : padding + row[i];
    }
    // When there are only spaces, npos + 1 is 0 and nothing is left.
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string render(const std::vector<Row>& rows, const std::vector<Align>& columns) {
    check(rows, columns.size());
    std::vector<std::size_t> widths(columns.size(), 3);
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    Row dashes;
    for (const std::size_t width : widths) {
        dashes.emplace_back(width, '-');
    }
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        text += line(rows[i], widths, columns);
        text += i == 0 ? line(dashes, widths, columns) : "";
    }
    return text;
}

std::vector<Align> guess(const std::vector<Row>& rows) {
    static const std::regex number("-?[0-9]+(\\.[0-9]+)?");
    std::vector<Align> columns(rows.empty() ? 0 : rows[0].size(), Align::left);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto fits = [i](const Row& row) { return std::regex_match(row[i], number); };
        if (rows.size() > 1 && std::all_of(rows.begin() + 1, rows.end(), fits)) {
            columns[i] = Align::right;
        }
    }
    return columns;
}

}  // namespace plain_table
