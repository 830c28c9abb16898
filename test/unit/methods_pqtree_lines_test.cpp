// Line quantization against float64 references: codes, scores, and the kernels on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "../../bench/pqtree/line_errors.h"
#include "methods/pqtree/line_kernels.h"
#include "methods/pqtree/search_kernels.h"
#include "methods_fixture.h"
#include "numeric_reference.h"
#include "pqtree_reference.h"

namespace pgwarp::test::pqtree_lines_test
{
namespace
{

constexpr std::size_t dimensions = 23;  // no multiple of anything

double product(const float* a, const float* b, std::size_t begin, std::size_t end)
{
    double sum = 0;
    for (std::size_t d = begin; d < end; ++d) sum += double{a[d]} * b[d];
    return sum;
}

struct LineTerm {
    float base;
    float slope;
};

// Terms by the formula of lines.h. length: of line_lengths(). from, to: the scores of the line's centroids within its
// line part.
LineTerm line_term(const LineTable& table, std::size_t line, float length, float from, float to)
{
    const float first = table.places[2 * line];
    const float step = table.places[2 * line + 1];
    const float difference = to - from - length;
    return {from + first * (difference + first * length), step * (difference + 2 * first * length)};
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

// Line scores are the direct distances to the decoded points.
TEST(PqtreeLines, ScoresAreDistancesToDecodedPoints)
{
    const TreeShape shape{dimensions, 2, 24, 4};
    for (const float spread : {1.0F, 1e-3F, 1e4F}) {
        const Trained trained(shape, 6, spread);
        ThreadPool pool(2);
        const std::size_t stride = 2 * trained.lines.shape.line_parts;
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
    const std::size_t stride = 2 * trained.lines.shape.line_parts;
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
    constexpr std::size_t width = 32;
    const std::vector<float> rows = random_rows(3000, width, 9);
    const auto measured = std::span(rows).first(200 * width);
    ThreadPool pool(2);
    const ProductTree tree = train_tree({width, 2, 40, 2}, rows, 7, pool);
    double before = HUGE_VAL;
    for (const std::size_t line_parts : {2, 4, 8, 16}) {
        const LineTable table = choose_lines(tree, line_parts, rows, pool);
        ASSERT_EQ(table.ends.size(), 2 * line_parts * 256);
        const std::size_t stride = 2 * line_parts;
        std::vector<std::uint8_t> codes(200 * stride);
        encode_lines(tree, table, measured, stride, codes.data(), pool);
        std::vector<float> decoded(width);
        double error = 0;
        for (std::size_t i = 0; i < 200; ++i) {
            decode_lines(tree, table, codes.data() + i * stride, decoded.data());
            error += squared(rows.data() + i * width, decoded.data(), 0, width) / 200;
        }
        const double least = bench::pqtree::all_pairs_error(tree, table.shape, measured);
        EXPECT_LT(error, 0.95 * before);
        EXPECT_GE(error, 0.99 * least);
        // With lines of two dimensions all errors are small, and those of rounding count.
        EXPECT_LE(error, 1.25 * least + 0.05 * static_cast<double>(line_parts));
        before = error;
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
        arrays.emplace_back(trained.lines, part, lengths);
        for (std::size_t c = 0; c < 20; ++c)
            scores[part * 20 + c] = static_cast<float>(
                squared(query, trained.tree.level1.data() + c * dimensions, lines.begin(part), lines.begin(part + 1)));
    }
    CodeTerms terms;
    make_terms(arrays, scores.data(), 20, terms);
    const std::size_t parts = padded(23);
    std::mt19937 random(3);
    std::vector<std::uint8_t> codes(50 * 2 * parts, 0);
    std::vector<float> biases(50, 0.5F);
    std::vector<std::uint32_t> positions;
    for (std::size_t i = 0; i < 50; ++i) {
        positions.push_back(static_cast<std::uint32_t>(49 - i));
        for (std::size_t part = 0; part < 23; ++part) {
            codes[i * 2 * parts + part] = static_cast<std::uint8_t>(random() % lines.lines());
            codes[i * 2 * parts + parts + part] = static_cast<std::uint8_t>(random());
        }
    }
    std::vector<float> wanted(50, 0.5F);
    std::vector<float> sizes(50, 0.0F);
    for (std::size_t i = 0; i < 50; ++i) {
        const std::uint8_t* code = codes.data() + (49 - i) * 2 * parts;
        for (std::size_t part = 0; part < 23; ++part) {
            const std::size_t line = part * lines.lines() + code[part];
            const LineTerm term =
                line_term(trained.lines, line, lengths[line], scores[part * 20 + trained.lines.end(line, 0)],
                          scores[part * 20 + trained.lines.end(line, 1)]);
            wanted[i] += term.base + term.slope * static_cast<float>(code[parts + part]);
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
            score_codes(own, codes.data(), biases.data(), parts, positions.data(), count, out.data());
            for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(out[i], wanted[i], 2e-4 * sizes[i]);
            score_codes(terms, codes.data(), biases.data(), parts, positions.data(), count, out.data());
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

}  // namespace
}  // namespace pgwarp::test::pqtree_lines_test
