// Locality-sensitive hashing: the number of functions (figure 5), the approximation ratio (figure 9), recall after a
// ranking of candidates, and nearest neighbours under the Laplacian kernel (table 2).
#include <algorithm>
#include <cmath>

#include "experiments.h"
#include "methods/matchcount/hash_count.h"

namespace pgwarp::bench::genie
{

namespace
{

using namespace pgwarp::matchcount;

// Equation 7.
double coverage(std::size_t m, double s, double epsilon)
{
    const auto functions = static_cast<double>(m);
    const double from = std::max(0.0, std::floor((s - epsilon) * functions + 1e-9));
    const double to = std::min(functions, std::ceil((s + epsilon) * functions - 1e-9));
    double sum = 0;
    for (double c = from; c <= to; ++c)
        sum += std::exp(std::lgamma(functions + 1) - std::lgamma(c + 1) - std::lgamma(functions - c + 1) +
                        c * std::log(s) + (functions - c) * std::log1p(-s));
    return sum;
}

// A row as a candidate: ascending by count, the largest first, then by row.
using Candidate = std::pair<std::uint32_t, std::uint32_t>;  // ~count, row

// The `wanted` rows of largest count of each query, from signatures.
std::vector<std::vector<Candidate>> candidates_of(const VectorHashes& hashes, const std::vector<std::uint8_t>& rows,
                                                  const std::vector<std::uint8_t>& asked, std::size_t queries,
                                                  std::size_t wanted, ThreadPool& pool)
{
    const std::size_t bytes = hashes.signature_bytes();
    const std::size_t count = rows.size() / bytes;
    std::vector<std::vector<Candidate>> found(queries);
    pool.parallel_for(queries, 1, [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint16_t> counts(count);
        for (std::size_t query = begin; query < end; ++query) {
            hashes.count_matches(asked.data() + query * bytes, rows.data(), count, counts.data());
            std::vector<Candidate> all(count);
            for (std::uint32_t row = 0; row < count; ++row) all[row] = {~std::uint32_t{counts[row]}, row};
            const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, count));
            std::nth_element(all.begin(), last, all.end());
            std::sort(all.begin(), last);
            found[query].assign(all.begin(), last);
        }
    });
    return found;
}

// Whether the counts of the first candidates are those of a comparison of all values.
std::string check_counts(const std::vector<std::vector<Candidate>>& found, const std::vector<std::uint8_t>& rows,
                         const std::vector<std::uint8_t>& asked, std::size_t bytes, std::size_t checked)
{
    std::size_t right = 0;
    checked = std::min(checked, found.size());
    for (std::size_t query = 0; query < checked; ++query) {
        std::vector<Candidate> all(rows.size() / bytes);
        for (std::uint32_t row = 0; row < all.size(); ++row) {
            std::uint32_t count = 0;
            for (std::size_t f = 0; f < bytes; ++f)
                count += rows[row * bytes + f] == asked[query * bytes + f] ? 1U : 0U;
            all[row] = {~count, row};
        }
        std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(found[query].size()), all.end());
        right += std::equal(found[query].begin(), found[query].end(), all.begin()) ? 1U : 0U;
    }
    return std::to_string(right) + "/" + std::to_string(checked);
}

// The first candidates by (distance, row).
Nearest ranked(const std::vector<Candidate>& candidates, std::size_t some, bool l1, const ByteVectors& vectors,
               std::size_t query)
{
    Nearest nearest;
    for (std::size_t i = 0; i < std::min(some, candidates.size()); ++i) {
        const std::uint32_t row = candidates[i].second;
        nearest.emplace_back(
            byte_distance(l1, vectors.row(row).data(), vectors.query(query).data(), vectors.dimensions), row);
    }
    std::sort(nearest.begin(), nearest.end());
    return nearest;
}

template <class Value>
double mean(std::size_t queries, const Value& value)
{
    double sum = 0;
    for (std::size_t query = 0; query < queries; ++query) sum += value(query);
    return sum / static_cast<double>(queries);
}

ByteVectors load(const Plan& plan, const std::string& name, std::size_t queries)
{
    ByteVectors vectors = plan.sources.vectors(name, queries);
    if (plan.rows != 0) vectors.base.resize(std::min(plan.rows, vectors.rows()) * vectors.dimensions);
    return vectors;
}

}  // namespace

void run_functions(const Plan& plan)
{
    constexpr double epsilon = 0.06;  // and delta
    Table table(plan.output, "figure5", "device method data similarity functions coverage");
    const std::size_t enough = hash_count(epsilon, epsilon) + 40;
    for (int percent = 1; percent < 100; percent += percent < 5 || percent > 94 ? 1 : 5) {
        const double s = percent / 100.0;
        // The least number such that equation 7 holds for it and all larger ones.
        std::size_t functions = enough;
        while (functions > 1 && coverage(functions - 1, s, epsilon) >= 1 - epsilon) --functions;
        table.row("-", "equation 7", "-", s, functions, coverage(functions, s, epsilon));
    }
    table.row("-", "equation 7", "-", "all", hash_count(epsilon, epsilon),
              least_coverage(hash_count(epsilon, epsilon), epsilon));
}

void run_ratio(const Plan& plan, ThreadPool& pool)
{
    if (!plan.sources.has("sift")) {
        std::printf("skipped: figure 9, base.u8 and query.bvecs or query.u8 are not there\n");
        return;
    }
    std::printf("figure 9\n");
    constexpr std::size_t most_candidates = 6144;
    const ByteVectors vectors = load(plan, "sift", plan.sources.quick() ? 20 : 200);
    const std::size_t queries = vectors.asked();
    const std::vector<Nearest> truth = nearest_by_brute_force(false, vectors, queries, 100, pool);
    // The width of the paper, and the product's: 1.7 times the distance of the hundredth nearest.
    const float wide = static_cast<float>(
        1.7 * mean(queries, [&](std::size_t q) { return std::sqrt(static_cast<double>(truth[q].back().first)); }));
    Table table(plan.output, "figure9",
                "device method data rows queries functions width k candidates ratio recall_at_k right");
    Table curve(plan.output, "candidates",
                "device method data rows queries functions width k candidates ratio recall_at_k right");
    for (const float width : {paper_width("sift", vectors), wide}) {
        VectorHashes hashes({HashFamily::stable, Metric::l2, paper_functions, paper_buckets}, vectors.dimensions);
        hashes.draw(width, 1);
        const std::vector<std::uint8_t> rows = signatures(hashes, vectors.base, pool);
        const std::vector<std::uint8_t> asked = signatures(hashes, vectors.queries, pool);
        const auto found = candidates_of(hashes, rows, asked, queries, most_candidates, pool);
        const std::string right = check_counts(found, rows, asked, hashes.signature_bytes(), plan.checked);
        const auto add = [&](Table& to, const char* method, std::size_t k, std::size_t some) {
            std::vector<Nearest> nearest;
            for (std::size_t q = 0; q < queries; ++q) nearest.push_back(ranked(found[q], some, false, vectors, q));
            to.row("cpu", method, "sift", vectors.rows(), queries, paper_functions, static_cast<double>(width), k, some,
                   mean(queries, [&](std::size_t q) { return approximation_ratio(nearest[q], truth[q], k, false); }),
                   mean(queries, [&](std::size_t q) { return recall_of(nearest[q], truth[q], k); }), right);
        };
        for (const std::size_t k : {1, 2, 4, 8, 16, 32, 64, 100}) add(table, "counts", k, k);
        for (const std::size_t k : {1, 2, 4, 8, 16, 32, 64, 100}) add(table, "ranked", k, 473);
        for (const std::size_t some : {10, 22, 54, 115, 268, 473, 1111, 2612, 6144}) add(curve, "ranked", 10, some);
    }
}

void run_kernel(const Plan& plan, ThreadPool& pool)
{
    if (!plan.sources.has("fashion")) {
        std::printf("skipped: table 2, fashion-base.u8 and fashion-query.u8 are not there\n");
        return;
    }
    std::printf("table 2\n");
    const ByteVectors vectors = load(plan, "fashion", plan.sources.quick() ? 20 : 1000);
    const std::size_t queries = vectors.asked();
    const std::vector<Nearest> truth = nearest_by_brute_force(true, vectors, queries, 100, pool);
    const float near = static_cast<float>(
        0.63 * mean(queries, [&](std::size_t q) { return static_cast<double>(truth[q].back().first); }));
    Table table(plan.output, "table2",
                "device method data rows queries functions buckets sigma candidates same_row ratio rank_100 "
                "within_2_epsilon right");
    for (const float sigma : {paper_width("fashion", vectors), near}) {
        VectorHashes hashes({HashFamily::binning, Metric::l1, paper_functions, binning_buckets}, vectors.dimensions);
        hashes.draw(sigma, 1);
        const std::vector<std::uint8_t> rows = signatures(hashes, vectors.base, pool);
        const std::vector<std::uint8_t> asked = signatures(hashes, vectors.queries, pool);
        const auto found = candidates_of(hashes, rows, asked, queries, 1000, pool);
        const std::string right = check_counts(found, rows, asked, hashes.signature_bytes(), plan.checked);
        for (const std::size_t some : {1, 10, 100, 1000}) {
            std::vector<Nearest> nearest;
            for (std::size_t q = 0; q < queries; ++q) nearest.push_back(ranked(found[q], some, true, vectors, q));
            const auto similarity = [&](std::uint32_t distance) {
                return std::exp(-static_cast<double>(distance) / sigma);
            };
            table.row(
                "cpu", "random binning", "fashion", vectors.rows(), queries, paper_functions, binning_buckets,
                static_cast<double>(sigma), some,
                mean(queries, [&](std::size_t q) { return nearest[q][0].first == truth[q][0].first ? 1.0 : 0.0; }),
                mean(queries, [&](std::size_t q) { return approximation_ratio(nearest[q], truth[q], 1, true); }),
                mean(queries,
                     [&](std::size_t q) {
                         return std::any_of(truth[q].begin(), truth[q].end(),
                                            [&](const auto& row) { return row.second == nearest[q][0].second; })
                                    ? 1.0
                                    : 0.0;
                     }),
                mean(queries,
                     [&](std::size_t q) {
                         return similarity(truth[q][0].first) - similarity(nearest[q][0].first) <= 0.12 ? 1.0 : 0.0;
                     }),
                right);
        }
    }
}

}  // namespace pgwarp::bench::genie
