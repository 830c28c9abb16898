// Weighted match counts, for sparse vectors: the score of a row is the sum, over the items of a query, of the item's
// weight times the weights of the row's elements of that keyword. Weights may be negative; rows that no item matches
// have the score 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/match_count.h"

namespace pgwarp::matchcount
{

struct WeightedItem {
    std::uint32_t keyword;
    float weight;
};

// Rows as lists of keywords with weights; rows.offsets begins with 0. Keywords may repeat.
struct WeightedRows {
    KeywordRows rows;
    std::span<const float> weights;  // of each of rows.keywords
};

// The inverted index of weighted rows: lists of rows, and beside them their weights.
class WeightedLists
{
public:
    // Throws BadRequest for a weight that is not finite.
    WeightedLists(const WeightedRows& rows, ThreadPool& pool);

    const KeywordLists& keywords() const { return keywords_; }
    std::span<const float> weights() const { return weights_; }  // of the postings of all lists
    // The postings of a keyword, ascending by row; postings of one row are in the row's order.
    struct List {
        std::span<const std::uint32_t> rows;
        std::span<const float> weights;
        float largest = 0;  // absolute weight
    };
    List list(std::uint32_t keyword) const;

private:
    KeywordLists keywords_;
    BulkVector<float> weights_;   // of each posting
    std::vector<float> largest_;  // absolute weight of each list
};

// Scores of all rows in fixed point: sums[row] is the score times 2^exponent, with an error of at most
// most_addends / 2. Proof: the product of two floats is exact in float64, and so is its product with a power of two;
// each of at most most_addends products is rounded to an integer, with an error of at most 1/2; sums of integers are
// exact, in any order. They do not overflow: with B, a bound of the sum of the absolute products of a row,
// B * 2^exponent + most_addends / 2 is less than 2^31.
struct FixedPointScores {
    std::vector<std::int32_t> sums;
    int exponent = 0;
    std::uint32_t most_addends = 0;  // of a row
};

FixedPointScores fixed_point_scores(const WeightedLists& lists, std::span<const WeightedItem> items);
// The same without the sums.
FixedPointScores fixed_point_scale(const WeightedLists& lists, std::span<const WeightedItem> items);
// Returns the number of an item's list, and its weight as it is multiplied with those of the postings. False where it
// adds nothing to a sum.
bool scale_item(const WeightedLists& lists, const WeightedItem& item, int exponent, std::size_t* number,
                double* weight);

struct ScoredRow {
    std::uint32_t row;
    double score;
};

// Returns the k live rows of largest score, ties by row. Scores are canonical: sums in float64 in the order of
// (keyword, the item's weight, place in the row), whatever the order of the items. `dead` may be empty. Throws
// BadRequest for an item's weight that is not finite.
std::vector<ScoredRow> search_weighted(const WeightedLists& lists, std::span<const WeightedItem> items, std::uint32_t k,
                                       RowBitmap dead);

}  // namespace pgwarp::matchcount
