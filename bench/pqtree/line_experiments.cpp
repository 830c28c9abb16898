// Table 3 and figure 7: line quantization by the number of line parts.
#include <algorithm>
#include <limits>
#include <mutex>

#include "experiments.h"
#include "line_errors.h"
#include "numeric/sample.h"
#include "tree_arrays.h"

namespace pgwarp::bench::pqtree
{

namespace
{

constexpr std::int64_t candidates = 20000;  // figure 7: fewer than that
constexpr std::uint32_t results = 1000;
constexpr std::size_t compared_pairs = 1000;  // rows whose error with all pairs of centroids is computed

// The paper's tree, and the product's for a million rows.
struct Tree {
    std::size_t k1, k2, width;
    std::string text() const { return std::to_string(k1) + " x " + std::to_string(k2); }
};
constexpr Tree trees[] = {{16, 8, 4}, {64, 16, 16}};

struct Errors {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    double sum = 0;
};

// Squared distances of all rows to the points that their codes stand for.
Errors errors_of(const TreeArrays& arrays, const std::vector<float>& rows, ThreadPool& pool)
{
    Errors all;
    std::mutex mutex;
    pool.parallel_for(arrays.rows, 4096, [&](std::size_t begin, std::size_t end) {
        Errors some;
        std::vector<float> point(arrays.dimensions);
        for (std::size_t row = begin; row < end; ++row) {
            const std::uint8_t* code = arrays.codes.data() + row * arrays.options.code_bytes();
            decode_lines(arrays.tree, arrays.lines, code + arrays.options.line_offset(), point.data());
            double error = 0;
            for (std::size_t d = 0; d < arrays.dimensions; ++d) {
                const double off = double{rows[row * arrays.dimensions + d]} - point[d];
                error += off * off;
            }
            some.least = std::min(some.least, error);
            some.most = std::max(some.most, error);
            some.sum += error;
        }
        const std::lock_guard lock(mutex);
        all.least = std::min(all.least, some.least);
        all.most = std::max(all.most, some.most);
        all.sum += some.sum;
    });
    return all;
}

}  // namespace

void run_lines(const Plan& plan, ThreadPool& pool)
{
    const auto data = plan.load("sift", Metric::l2, plan.rows, pool);
    if (!data) return;
    Table errors(plan.output, "table3",
                 "device tree data rows line_parts least most mean all_pairs mean_length one_query_us");
    Table recalls(plan.output, "figure7", "device tree data rows line_parts candidates results recall");
    double length = 0;
    for (const float value : data->base) length += double{value} * value / static_cast<double>(data->rows);
    const auto sampled = gather_rows(data->base.data(), data->dimensions, sample_rows(data->rows, compared_pairs, 1));
    for (const Tree& tree : trees) {
        for (std::size_t line_parts = 2; line_parts <= std::min<std::size_t>(32, data->dimensions); line_parts *= 2) {
            const Index index =
                build_index("pqtree,parts=2,refine=0,k1=" + std::to_string(tree.k1) + ",k2=" + std::to_string(tree.k2) +
                                ",line_parts=" + std::to_string(line_parts),
                            *data, plan.device, pool);
            const TreeArrays arrays = arrays_of(index);
            const Errors all = errors_of(arrays, data->base, pool);
            Search asked{.k = results, .effort = candidates, .rounds = 0};
            asked.settings.set("width", static_cast<std::int64_t>(tree.width));
            const Found found = search(index, *data, asked, plan.searching(pool));
            asked.batch = 1;
            asked.rounds = 1;
            const double us = search(index, *data, asked, plan.searching(pool)).us;
            errors.row(plan.device.name(), tree.text(), data->name, data->rows, line_parts, all.least, all.most,
                       all.sum / static_cast<double>(data->rows),
                       all_pairs_error(arrays.tree, arrays.lines.shape, sampled), length, us);
            for (const std::size_t n : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000})
                recalls.row(plan.device.name(), tree.text(), data->name, data->rows, line_parts,
                            std::to_string(candidates), n, nearest_within(found, *data, n));
        }
    }
}

}  // namespace pgwarp::bench::pqtree
