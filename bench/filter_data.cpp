#include "filter_data.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <unordered_set>

#include "cluster_order.h"
#include "ground_truth.h"

namespace pgwarp::bench
{

namespace
{

template <typename F>
void on_all_cores(std::size_t count, const F& work)
{
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
        threads.emplace_back([&] {
            for (std::size_t at; (at = next++) < count;) work(at);
        });
    }
}

std::vector<std::int32_t> codes_in_order(const std::vector<std::uint32_t>& order)
{
    std::vector<std::int32_t> out(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        out[order[i]] = static_cast<std::int32_t>(i * static_cast<std::size_t>(codes) / order.size());
    return out;
}

std::int32_t width_of(double share)
{
    return std::clamp(static_cast<std::int32_t>(std::lround(share * codes)), 1, codes);
}

// The middles of the clusters of `width` regions each.
Matrix<float> find_middles(const FilterData& data, std::int32_t width)
{
    const auto count = static_cast<std::size_t>((codes + width - 1) / width);
    Matrix<float> middles{count, data.base.columns, std::vector<float>(count * data.base.columns)};
    std::vector<std::size_t> sizes(count);
    for (std::size_t row = 0; row < data.base.rows; ++row) {
        const auto cluster = static_cast<std::size_t>(data.region[row] / width);
        ++sizes[cluster];
        const auto middle = middles.row(cluster);
        std::ranges::transform(middle, data.base.row(row), middle.begin(), std::plus<>());
    }
    for (std::size_t i = 0; i < count; ++i) {
        for (float& value : middles.row(i)) value /= static_cast<float>(std::max<std::size_t>(1, sizes[i]));
    }
    return middles;
}

std::int32_t farthest(const Matrix<float>& middles, std::span<const float> query)
{
    std::size_t best = 0;
    double most = -1;
    for (std::size_t i = 0; i < middles.rows; ++i) {
        const double here = distance(Metric::l2, query, middles.row(i));
        if (here > most) {
            most = here;
            best = i;
        }
    }
    return static_cast<std::int32_t>(best);
}

std::array<std::int32_t, 2> range_of(std::int32_t cluster, std::int32_t width)
{
    return {cluster * width, std::min((cluster + 1) * width, codes) - 1};
}

// nearest: the row next to each query.
void make_conditions(FilterData& data, double share, const std::vector<std::size_t>& nearest)
{
    const std::int32_t width = width_of(share);
    if (width == codes) {
        data.conditions.push_back({1, Where::all, {}});
        data.conditions.back().ranges.assign(data.queries.rows, {0, codes - 1});
        return;
    }
    const Matrix<float> middles = find_middles(data, width);
    Condition anywhere{share, Where::anywhere, {}};
    Condition near{share, Where::near, {}};
    Condition far{share, Where::far, {}};
    for (std::size_t q = 0; q < data.queries.rows; ++q) {
        anywhere.ranges.push_back(range_of(static_cast<std::int32_t>(q * 37 % middles.rows), width));
        near.ranges.push_back(range_of(data.region[nearest[q]] / width, width));
        far.ranges.push_back(range_of(farthest(middles, data.queries.row(q)), width));
    }
    for (Condition* condition : {&anywhere, &near, &far}) data.conditions.push_back(std::move(*condition));
}

bool passes(const std::array<std::int32_t, 2>& range, std::int32_t code)
{
    return range[0] <= code && code <= range[1];
}

void find_answers(FilterData& data, std::size_t query, std::size_t k, const std::vector<double>& distances)
{
    std::vector<double> passing;
    for (std::size_t c = 0; c < data.conditions.size(); ++c) {
        const Condition& condition = data.conditions[c];
        const std::vector<std::int32_t>& attribute = data.attribute(condition);
        passing.clear();
        for (std::size_t row = 0; row < distances.size(); ++row) {
            if (passes(condition.ranges[query], attribute[row])) passing.push_back(distances[row]);
        }
        if (passing.empty()) throw std::runtime_error("too few rows: a condition passes none");
        const std::size_t wanted = std::min(k, passing.size());
        const auto last = passing.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
        std::nth_element(passing.begin(), last, passing.end());
        data.limits[c][query] = *last;
        data.expected[c][query] = wanted;
    }
}

}  // namespace

const char* name_of(Where where)
{
    constexpr const char* names[] = {"all", "anywhere", "near", "far"};
    return names[static_cast<int>(where)];
}

std::string Condition::text() const
{
    return where == Where::all ? "" : std::string(" WHERE ") + column() + " BETWEEN $2 AND $3";
}

void add_conditions(FilterData& data, const std::vector<double>& shares, std::size_t k)
{
    std::vector<std::uint32_t> any_order(data.base.rows);
    std::iota(any_order.begin(), any_order.end(), 0U);
    std::shuffle(any_order.begin(), any_order.end(), std::mt19937_64(3));
    data.number = codes_in_order(any_order);
    data.region = codes_in_order(cluster_order(data.base));
    std::vector<std::vector<double>> distances(data.queries.rows);
    std::vector<std::size_t> nearest(data.queries.rows);
    on_all_cores(data.queries.rows, [&](std::size_t q) {
        distances[q].resize(data.base.rows);
        for (std::size_t row = 0; row < data.base.rows; ++row)
            distances[q][row] = distance(Metric::l2, data.queries.row(q), data.base.row(row));
        nearest[q] = static_cast<std::size_t>(std::ranges::min_element(distances[q]) - distances[q].begin());
    });
    for (const double share : shares) make_conditions(data, share, nearest);
    data.limits.assign(data.conditions.size(), std::vector<double>(data.queries.rows));
    data.expected.assign(data.conditions.size(), std::vector<std::size_t>(data.queries.rows));
    on_all_cores(data.queries.rows, [&](std::size_t q) { find_answers(data, q, k, distances[q]); });
}

double recall_of(const FilterData& data, std::size_t condition, std::size_t query, const std::vector<std::int32_t>& ids)
{
    const Condition& asked = data.conditions[condition];
    std::unordered_set<std::int32_t> seen;
    std::size_t found = 0;
    for (const std::int32_t id : ids) {
        const auto row = static_cast<std::size_t>(id);
        if (row >= data.base.rows || !passes(asked.ranges[query], data.attribute(asked)[row]))
            throw std::runtime_error("a row came back that does not pass");
        if (!seen.insert(id).second) throw std::runtime_error("a row came back twice");
        found += distance(Metric::l2, data.queries.row(query), data.base.row(row)) <= data.limits[condition][query];
    }
    return static_cast<double>(found) / static_cast<double>(data.expected[condition][query]);
}

}  // namespace pgwarp::bench
