// The parts of pqtree against float64 references: the tree, the order of bins, lines and their codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "methods/pqtree/bin_lists.h"
#include "methods/pqtree/bin_order.h"
#include "methods/pqtree/line_kernels.h"
#include "methods/pqtree/lines.h"
#include "methods/pqtree/tree.h"
#include "methods_fixture.h"
#include "numeric_reference.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t dimensions = 23;  // no multiple of anything

double squared(const float* a, const float* b, std::size_t begin, std::size_t end)
{
    double sum = 0;
    for (std::size_t d = begin; d < end; ++d) sum += (double{a[d]} - b[d]) * (double{a[d]} - b[d]);
    return sum;
}

double product(const float* a, const float* b, std::size_t begin, std::size_t end)
{
    double sum = 0;
    for (std::size_t d = begin; d < end; ++d) sum += double{a[d]} * b[d];
    return sum;
}

struct Trained {
    std::vector<float> rows;
    ProductTree tree;
    LineTable lines;

    Trained(const TreeShape& shape, std::size_t line_parts, float spread = 1, std::size_t count = 3000)
        : rows(random_rows(count, shape.dimensions, 5, spread))
    {
        ThreadPool pool(2);
        tree = train_tree(shape, rows, 7, pool);
        lines = choose_lines(tree, line_parts, std::span(rows).first(1000 * shape.dimensions), pool);
    }
};

TEST(PqtreeTree, SplitsDimensionsIntoPieces)
{
    const LineShape shape{{dimensions, 2, 8, 4}, 6};
    EXPECT_EQ(shape.tree.begin(1), 12U);
    EXPECT_EQ(shape.begin(0), 0U);
    EXPECT_EQ(shape.begin(3), 12U);
    EXPECT_EQ(shape.begin(6), dimensions);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_GE(shape.width(i), 3U);
}

TEST(PqtreeTree, AssignsTheNearestLeafOfTheNearestCentroid)
{
    const TreeShape shape{dimensions, 3, 12, 5};
    const Trained trained(shape, 3);
    ThreadPool pool(2);
    const std::size_t count = trained.rows.size() / dimensions;
    std::vector<std::uint16_t> leaves(count * shape.parts);
    assign_leaves(trained.tree, trained.rows, leaves, pool);
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = trained.rows.data() + i * dimensions;
        for (std::size_t part = 0; part < shape.parts; ++part) {
            const std::size_t begin = shape.begin(part);
            const std::size_t end = shape.begin(part + 1);
            const auto to = [&](const std::vector<float>& level, std::size_t number) {
                return squared(row, level.data() + number * dimensions, begin, end);
            };
            const std::size_t leaf = leaves[i * shape.parts + part];
            const std::size_t centroid = leaf / shape.k2;
            const double slack = 1e-4 * to(trained.tree.level1, centroid) + 1e-4;
            for (std::size_t c = 0; c < shape.k1; ++c)
                EXPECT_LE(to(trained.tree.level1, centroid), to(trained.tree.level1, c) + slack);
            for (std::size_t j = 0; j < shape.k2; ++j)
                EXPECT_LE(to(trained.tree.level2, leaf), to(trained.tree.level2, centroid * shape.k2 + j) + slack);
        }
    }
}

TEST(PqtreeTree, IsTheSameOnAnyNumberOfThreads)
{
    const std::vector<float> rows = random_rows(2000, dimensions, 3);
    ThreadPool one(1);
    ThreadPool three(3);
    const ProductTree a = train_tree({dimensions, 2, 16, 4}, rows, 7, one);
    const ProductTree b = train_tree({dimensions, 2, 16, 4}, rows, 7, three);
    EXPECT_EQ(a.level1, b.level1);
    EXPECT_EQ(a.level2, b.level2);
    EXPECT_EQ(choose_lines(a, 6, rows, one).ends, choose_lines(b, 6, rows, three).ends);
    EXPECT_EQ(choose_lines(a, 6, rows, one).places, choose_lines(b, 6, rows, three).places);
}

RankedParts random_parts(std::size_t parts, std::size_t leaves, unsigned seed, bool with_ties)
{
    std::mt19937 random(seed);
    std::exponential_distribution<float> steps(1);
    RankedParts ranked(parts);
    for (auto& part : ranked) {
        float score = 10 * steps(random);
        for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
            part.push_back({with_ties ? std::floor(score) : score, leaf});
            score += steps(random);
        }
        if (!with_ties) std::ranges::shuffle(part, random);
        for (std::uint32_t i = 0; i < leaves; ++i) part[i].leaf = i;
        std::ranges::sort(part,
                          [](auto a, auto b) { return a.score != b.score ? a.score < b.score : a.leaf < b.leaf; });
    }
    return ranked;
}

double sum_of(const RankedParts& parts, const BinRanks& ranks)
{
    double sum = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) sum += parts[part][ranks[part]].score;
    return sum;
}

struct ScoredBin {
    float score;
    std::uint64_t bin;
};

// Writes the runs of the nearest bins out.
std::vector<ScoredBin> bins_of(const RankedParts& ranked, std::size_t leaves, std::size_t wanted)
{
    NearestBins nearest;
    nearest_bins(ranked, leaves, wanted, wanted, nearest);
    std::vector<ScoredBin> bins;
    for (const BinRun& run : nearest.runs) {
        for (std::size_t j = 0; j < run.end; ++j)
            bins.push_back({run.score + ranked.back()[j].score, run.first + ranked.back()[j].leaf});
    }
    EXPECT_EQ(bins.size(), nearest.count);
    return bins;
}

TEST(PqtreeBins, DijkstraOrdersAllBins)
{
    for (const std::size_t parts : {1, 2, 3}) {
        const RankedParts ranked = random_parts(parts, 9, 11, false);
        const auto all = static_cast<std::size_t>(std::pow(9, parts));
        const std::vector<BinRanks> order = dijkstra_order(ranked, 10 * all);
        ASSERT_EQ(order.size(), all);
        EXPECT_EQ(std::set<BinRanks>(order.begin(), order.end()).size(), all);
        for (std::size_t i = 1; i < all; ++i) EXPECT_LE(sum_of(ranked, order[i - 1]), sum_of(ranked, order[i]));
    }
}

// The nearest bins are those of the exact order, up to the rounding of sums in float.
TEST(PqtreeBins, NearestBinsAreThoseOfDijkstra)
{
    for (const std::size_t parts : {1, 2, 3, 4}) {
        for (const std::size_t wanted : {1, 7, 60, 500, 5000}) {
            const std::size_t leaves = parts == 4 ? 9 : 40;
            const RankedParts ranked = random_parts(parts, leaves, 13, false);
            const std::vector<BinRanks> order = dijkstra_order(ranked, wanted);
            const std::vector<ScoredBin> bins = bins_of(ranked, leaves, wanted);
            ASSERT_EQ(bins.size(), order.size());
            std::set<std::uint64_t> found;
            double farthest = 0;
            for (const ScoredBin& bin : bins) {
                found.insert(bin.bin);
                std::uint64_t digits = bin.bin;
                double sum = 0;
                for (std::size_t part = parts; part-- > 0; digits /= leaves) {
                    const auto leaf = std::ranges::find(ranked[part], digits % leaves, &RankedLeaf::leaf);
                    sum += leaf->score;
                }
                EXPECT_NEAR(bin.score, sum, 1e-4);
                farthest = std::max(farthest, sum);
            }
            EXPECT_EQ(found.size(), bins.size());
            EXPECT_NEAR(farthest, sum_of(ranked, order.back()), 1e-4);
        }
    }
}

// Equal sums are cut so that the number is exact.
TEST(PqtreeBins, EqualScoresAreCut)
{
    const RankedParts ranked = random_parts(2, 50, 17, true);
    for (const std::size_t wanted : {3, 100, 777, 2400}) {
        const std::vector<ScoredBin> bins = bins_of(ranked, 50, wanted);
        EXPECT_EQ(bins.size(), wanted);
        float farthest = 0;
        for (const ScoredBin& bin : bins) farthest = std::max(farthest, bin.score);
        EXPECT_NEAR(farthest, sum_of(ranked, dijkstra_order(ranked, wanted).back()), 1e-4);
    }
}

TEST(PqtreeBins, SlopeOrdersAreMonotone)
{
    const SlopeOrder orders(40, 300);
    for (std::size_t slope = 0; slope < SlopeOrder::slopes; ++slope) {
        const auto order = orders.order(slope);
        ASSERT_EQ(order.size(), 300U);
        std::set<SlopeOrder::Pair> passed;
        for (const auto& [i, j] : order) {
            if (i > 0) {
                EXPECT_TRUE(passed.contains({static_cast<std::uint16_t>(i - 1), j}));
            }
            if (j > 0) {
                EXPECT_TRUE(passed.contains({i, static_cast<std::uint16_t>(j - 1)}));
            }
            passed.insert({i, j});
        }
        std::size_t deepest[2] = {0, 0};
        for (const auto& [i, j] : order) {
            deepest[0] = std::max<std::size_t>(deepest[0], i);
            deepest[1] = std::max<std::size_t>(deepest[1], j);
        }
        if (slope == 0) {
            EXPECT_LT(deepest[0], deepest[1]);
        }
    }
}

// A part whose scores grow faster is followed less deep.
TEST(PqtreeBins, TheSlopeFollowsTheGrowth)
{
    std::vector<RankedLeaf> slow;
    std::vector<RankedLeaf> fast;
    for (std::uint32_t i = 0; i < 100; ++i) {
        slow.push_back({std::sqrt(static_cast<float>(i)), i});
        fast.push_back({1.5F * std::sqrt(static_cast<float>(i)), i});
    }
    EXPECT_EQ(SlopeOrder::choose(slow, slow), 5U);
    EXPECT_LT(SlopeOrder::choose(fast, slow), 5U);
    EXPECT_GT(SlopeOrder::choose(slow, fast), 5U);
    // Here the order by slope is that of the sums, but for the rounding of the slope.
    const SlopeOrder orders(100, 400);
    const auto order = orders.order(SlopeOrder::choose(fast, slow));
    std::set<SlopeOrder::Pair> passed(order.begin(), order.end());
    std::size_t common = 0;
    for (const BinRanks& ranks : dijkstra_order({fast, slow}, 400)) common += passed.count({ranks[0], ranks[1]});
    EXPECT_GE(common, 380U);
}

// Line scores are the direct distances to the decoded points.
TEST(PqtreeLines, ScoresAreDistancesToDecodedPoints)
{
    const TreeShape shape{dimensions, 2, 24, 4};
    for (const float spread : {1.0F, 1e-3F, 1e4F}) {
        const Trained trained(shape, 6, spread);
        ThreadPool pool(2);
        const std::size_t stride = line_code_bytes(trained.lines.shape);
        const std::size_t count = trained.rows.size() / dimensions;
        std::vector<std::uint8_t> codes(count * stride);
        encode_lines(trained.tree, trained.lines, trained.rows, stride, codes.data(), pool);
        std::vector<float> decoded(dimensions);
        for (const Metric metric : {Metric::l2, Metric::inner_product}) {
            const std::vector<float> lengths = line_lengths(trained.tree, trained.lines, metric);
            const float* query = trained.rows.data();
            const std::size_t lines = trained.lines.shape.lines();
            for (std::size_t i = 1; i < 200; ++i) {
                const std::uint8_t* code = codes.data() + i * stride;
                decode_lines(trained.tree, trained.lines, code, decoded.data());
                double score = line_bias(trained.lines, lengths, code);
                for (std::size_t part = 0; part < 6; ++part) {
                    const std::size_t line = part * lines + code[part];
                    const auto end_score = [&](std::size_t side) {
                        const float* centroid = trained.tree.level1.data() + trained.lines.end(line, side) * dimensions;
                        const std::size_t begin = trained.lines.shape.begin(part);
                        const std::size_t end = trained.lines.shape.begin(part + 1);
                        return static_cast<float>(metric == Metric::l2 ? squared(query, centroid, begin, end)
                                                                       : -product(query, centroid, begin, end));
                    };
                    const LineTerm term = line_term(trained.lines, line, lengths[line], end_score(0), end_score(1));
                    score += double{term.base} + double{term.slope} * code[6 + part];
                }
                const double direct = metric == Metric::l2 ? squared(query, decoded.data(), 0, dimensions)
                                                           : -product(query, decoded.data(), 0, dimensions);
                const double scale = squared(query, trained.tree.level1.data(), 0, dimensions) + std::fabs(direct);
                EXPECT_NEAR(score, direct, 1e-4 * scale);
            }
        }
    }
}

// A code is the nearest point of the table, as far as bytes tell.
TEST(PqtreeLines, CodesAreNearestPoints)
{
    const TreeShape shape{dimensions, 2, 12, 4};
    const Trained trained(shape, 6);
    ThreadPool pool(1);
    const std::size_t stride = line_code_bytes(trained.lines.shape);
    std::vector<std::uint8_t> codes(100 * stride);
    encode_lines(trained.tree, trained.lines, std::span(trained.rows).first(100 * dimensions), stride, codes.data(),
                 pool);
    std::vector<float> decoded(dimensions);
    std::vector<float> other(dimensions);
    const std::size_t lines = trained.lines.shape.lines();
    double all = 0;
    double least = 0;
    for (std::size_t i = 0; i < 100; ++i) {
        const float* row = trained.rows.data() + i * dimensions;
        decode_lines(trained.tree, trained.lines, codes.data() + i * stride, decoded.data());
        all += squared(row, decoded.data(), 0, dimensions);
        std::vector<double> best(6, HUGE_VAL);
        std::vector<std::uint8_t> code(stride);
        for (std::size_t line = 0; line < lines; ++line) {
            for (std::size_t place = 0; place < 256; ++place) {
                std::fill_n(code.begin(), 6, static_cast<std::uint8_t>(line));
                std::fill_n(code.begin() + 6, 6, static_cast<std::uint8_t>(place));
                decode_lines(trained.tree, trained.lines, code.data(), other.data());
                for (std::size_t part = 0; part < 6; ++part)
                    best[part] = std::min(best[part], squared(row, other.data(), trained.lines.shape.begin(part),
                                                              trained.lines.shape.begin(part + 1)));
            }
        }
        for (const double one : best) least += one;
    }
    EXPECT_GE(all, least * (1 - 1e-6));
    EXPECT_LE(all, least * 1.01 + 1e-6);
}

// Table 3 of the paper: the error falls with the number of line parts; and a table of 256 lines loses little against
// all pairs.
TEST(PqtreeLines, ErrorFallsWithLineParts)
{
    const std::vector<float> rows = random_rows(3000, 32, 9);
    ThreadPool pool(2);
    const ProductTree tree = train_tree({32, 2, 40, 2}, rows, 7, pool);
    double before = HUGE_VAL;
    for (const std::size_t line_parts : {2, 4, 8, 16}) {
        const LineTable table = choose_lines(tree, line_parts, rows, pool);
        ASSERT_EQ(table.ends.size(), 2 * line_parts * 256);
        const LineErrors errors = line_errors(tree, table, std::span(rows).first(200 * 32));
        EXPECT_LT(errors.of_table, 0.95 * before);
        EXPECT_GE(errors.of_table, 0.99 * errors.of_all_pairs);
        // With lines of two dimensions all errors are small, and those of rounding count.
        EXPECT_LE(errors.of_table, 1.25 * errors.of_all_pairs + 0.05 * line_parts);
        before = errors.of_table;
    }
}

// Terms in 16 bits give the scores of terms in floats, up to their rounding.
TEST(PqtreeLines, PackedTermsKeepTheScores)
{
    const TreeShape shape{dimensions, 1, 20, 2};
    const Trained trained(shape, 23);
    ThreadPool pool(1);
    const LineShape& lines = trained.lines.shape;
    const std::vector<float> lengths = line_lengths(trained.tree, trained.lines, Metric::l2);
    std::vector<LineArrays> arrays;
    std::vector<float> scores(23 * 20);
    const float* query = trained.rows.data() + 5 * dimensions;
    for (std::size_t part = 0; part < 23; ++part) {
        LineArrays one(lines.lines());
        for (std::size_t i = 0; i < lines.lines(); ++i) {
            const std::size_t line = part * lines.lines() + i;
            one.from[i] = static_cast<std::int32_t>(trained.lines.end(line, 0));
            one.to[i] = static_cast<std::int32_t>(trained.lines.end(line, 1));
            one.first[i] = trained.lines.places[2 * line];
            one.step[i] = trained.lines.places[2 * line + 1];
            one.length[i] = lengths[line];
        }
        arrays.push_back(one);
        for (std::size_t c = 0; c < 20; ++c)
            scores[part * 20 + c] = static_cast<float>(
                squared(query, trained.tree.level1.data() + c * dimensions, lines.begin(part), lines.begin(part + 1)));
    }
    CodeTerms terms;
    make_terms(arrays, scores.data(), 20, terms);
    const std::size_t padded = padded_line_parts(23);
    std::mt19937 random(3);
    std::vector<std::uint8_t> codes(50 * 2 * padded, 0);
    std::vector<float> biases(50, 0.5F);
    std::vector<std::uint32_t> positions;
    for (std::size_t i = 0; i < 50; ++i) {
        positions.push_back(static_cast<std::uint32_t>(49 - i));
        for (std::size_t part = 0; part < 23; ++part) {
            codes[i * 2 * padded + part] = static_cast<std::uint8_t>(random() % lines.lines());
            codes[i * 2 * padded + padded + part] = static_cast<std::uint8_t>(random());
        }
    }
    std::vector<float> wanted(50, 0.5F);
    std::vector<float> sizes(50, 0.0F);
    for (std::size_t i = 0; i < 50; ++i) {
        const std::uint8_t* code = codes.data() + (49 - i) * 2 * padded;
        for (std::size_t part = 0; part < 23; ++part) {
            const std::size_t line = part * lines.lines() + code[part];
            const LineTerm term =
                line_term(trained.lines, line, lengths[line], scores[part * 20 + trained.lines.end(line, 0)],
                          scores[part * 20 + trained.lines.end(line, 1)]);
            wanted[i] += term.base + term.slope * static_cast<float>(code[padded + part]);
            sizes[i] += std::fabs(term.base) + 255 * std::fabs(term.slope);
        }
    }
    // Sums of the same terms are the same on every instruction set.
    std::vector<float> first;
    reference::for_each_target([&](const char* target) {
        SCOPED_TRACE(target);
        CodeTerms own;
        make_terms(arrays, scores.data(), 20, own);
        for (const std::size_t count : {1, 50}) {
            std::vector<float> out(count);
            score_codes(own, codes.data(), biases.data(), padded, positions.data(), count, out.data());
            for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(out[i], wanted[i], 2e-4 * sizes[i]);
            score_codes(terms, codes.data(), biases.data(), padded, positions.data(), count, out.data());
            if (count < 50) continue;
            if (first.empty()) first = out;
            EXPECT_EQ(out, first);
        }
    });
}

// Every instruction set finds the nearest line.
TEST(PqtreeLines, EveryTargetFindsTheNearestLine)
{
    const std::vector<float> rows = random_rows(37, 5, 3);
    const std::vector<float> points = random_rows(70, 5, 4);
    PackedLines lines(35, 5);
    std::vector<float> units;
    for (std::size_t line = 0; line < 35; ++line) {
        std::vector<float> direction(points.begin() + static_cast<std::ptrdiff_t>((35 + line) * 5),
                                     points.begin() + static_cast<std::ptrdiff_t>((36 + line) * 5));
        normalise_rows(direction, 5);
        lines.set(line, points.data() + line * 5, direction.data());
        units.insert(units.end(), direction.begin(), direction.end());
    }
    reference::for_each_target([&](const char* target) {
        SCOPED_TRACE(target);
        std::vector<LinePlace> found(37);
        nearest_lines(lines, rows.data(), 37, found.data());
        std::vector<float> errors(35 * 37);
        line_errors(lines, rows.data(), 37, 37, errors.data());
        std::vector<float> current(37, 3.0F);
        for (std::size_t i = 0; i < 37; ++i) {
            double least = HUGE_VAL;
            for (std::size_t line = 0; line < 35; ++line) {
                double along = 0;
                for (std::size_t d = 0; d < 5; ++d)
                    along += (double{rows[i * 5 + d]} - points[line * 5 + d]) * units[line * 5 + d];
                const double away = squared(rows.data() + i * 5, points.data() + line * 5, 0, 5) - along * along;
                EXPECT_NEAR(errors[line * 37 + i], away, 1e-3);
                least = std::min(least, away);
                if (line == found[i].line) {
                    EXPECT_NEAR(found[i].place, along, 1e-3);
                }
            }
            EXPECT_NEAR(errors[found[i].line * 37 + i], least, 1e-3);
        }
        double gain = 0;
        for (std::size_t i = 0; i < 37; ++i) gain += std::max(0.0, 3.0 - double{errors[i]});
        EXPECT_NEAR(line_gain(current.data(), errors.data(), 37), gain, 1e-3);
    });
}

// Every row is in the list of its slot once, also where bins are hashed.
TEST(PqtreeLists, HoldEveryRowOnce)
{
    for (const std::size_t parts : {2, 4}) {
        const TreeShape shape{32, parts, 16, 8};
        const std::vector<float> rows = random_rows(2000, 32, 21);
        ThreadPool pool(2);
        const ProductTree tree = train_tree(shape, rows, 7, pool);
        std::vector<std::uint16_t> leaves(2000 * parts);
        assign_leaves(tree, rows, leaves, pool);
        std::vector<std::uint8_t> codes(2000 * 2 * parts);
        for (std::size_t i = 0; i < 2000; ++i)
            for (std::size_t part = 0; part < parts; ++part)
                set_leaf(codes.data() + i * 2 * parts, part, leaves[i * parts + part]);
        const BinLists lists(shape, codes, 2 * parts, pool);
        EXPECT_EQ(lists.slots().hashed, parts == 4);
        std::set<std::uint32_t> seen;
        for (std::uint64_t slot = 0; slot < lists.slots().slots; ++slot) {
            for (std::uint32_t position = lists.begin(slot); position < lists.end(slot); ++position) {
                const std::uint32_t row = lists.row_at(position);
                EXPECT_TRUE(seen.insert(row).second);
                EXPECT_EQ(lists.slots().slot(bin_of(leaves.data() + row * parts, parts, shape.leaves())), slot);
            }
        }
        EXPECT_EQ(seen.size(), 2000U);
        codes[1] = 255;
        EXPECT_THROW(BinLists(shape, codes, 2 * parts, pool), BadRequest);
    }
}

}  // namespace
}  // namespace pgwarp::test
