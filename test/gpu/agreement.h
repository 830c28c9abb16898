// How far two answers to the same queries agree.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "methods/method.h"

namespace pgwarp::test
{

using Results = std::vector<std::vector<RowResult>>;

struct Agreement {
    double share = 0;         // share of the expected rows that were found
    std::size_t unequal = 0;  // rows in both answers with different values
    bool ordered = true;      // by (value, row), no row twice
};

// tolerance: relative, of values.
inline Agreement compare(const Results& expected, const Results& found, double tolerance = 0)
{
    Agreement agreement;
    double shared = 0;
    double all = 0;
    for (std::size_t q = 0; q < expected.size(); ++q) {
        std::map<std::uint32_t, double> values;
        for (const RowResult& result : expected[q]) values[result.row] = result.distance;
        std::set<std::uint32_t> seen;
        for (std::size_t i = 0; i < found[q].size(); ++i) {
            const RowResult& result = found[q][i];
            if (!seen.insert(result.row).second) agreement.ordered = false;
            if (i > 0) {
                const RowResult& before = found[q][i - 1];
                if (std::pair(result.distance, result.row) < std::pair(before.distance, before.row))
                    agreement.ordered = false;
            }
            const auto known = values.find(result.row);
            if (known == values.end()) continue;
            shared += 1;
            const bool near = std::fabs(known->second - result.distance) <= tolerance * (1 + std::fabs(known->second));
            if (known->second != result.distance && !near) ++agreement.unequal;
        }
        all += static_cast<double>(expected[q].size());
    }
    agreement.share = all > 0 ? shared / all : 1;
    return agreement;
}

}  // namespace pgwarp::test
