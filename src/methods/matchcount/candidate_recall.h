// Recall by the number of candidates: of sample rows as queries, the ranks of their true neighbours in the order of
// match counts. Distances and counts of the rows come from a measurement of vectors or sets, which says which
// neighbours count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp::matchcount
{

inline constexpr std::size_t most_sampled_queries = 200;

// The neighbours of a query that count for recall. Where it has none, a row is made up for it.
struct CountedNeighbours {
    float farthest;           // the largest score of one
    double collision_chance;  // of the made-up row, for each function
};
// The number of queries that recall rests on at least: as long as fewer have neighbours that count, rows are made up
// for others.
inline constexpr std::size_t fewest_measured_queries = 40;

class CandidateRecall
{
public:
    // own: the numbers of the rows of the index that are the queries. functions: the largest match count.
    CandidateRecall(std::size_t functions, std::vector<std::uint32_t> own);

    std::size_t queries() const { return own_.size(); }
    // Adds rows, the first of which has the number `first`, to what is known of a query. scores: ascending with the
    // distance; counts: the rows' match counts. Rows of `dead` and the query itself don't count. Thread-safe for
    // different queries.
    void add(std::size_t query, std::span<const float> scores, std::span<const std::uint16_t> counts, std::size_t first,
             RowBitmap dead);
    // The curve of an index of `rows` live rows, all of which were added. A search compares as many
    // rows as its effort says, and returns the nearest of them. counted [queries()]; empty: all neighbours count.
    Calibration curve(std::size_t rows, std::span<const CountedNeighbours> counted = {}) const;
    // Whether a neighbour of the query counts.
    bool has_counted(std::size_t query, const CountedNeighbours& counted) const;

private:
    struct Near {
        float score;
        std::uint32_t row;
        std::uint32_t count;
        // Of rows at the same distance, those of larger counts: any of them is a right answer.
        friend bool operator<(const Near& a, const Near& b)
        {
            if (a.score != b.score) return a.score < b.score;
            return a.count != b.count ? a.count > b.count : a.row < b.row;
        }
    };
    struct Query {
        std::vector<Near> nearest;                 // a heap
        std::vector<std::uint32_t> rows_of_count;  // [functions + 1]
        void add(const Near& row);
        std::vector<std::uint32_t> rows_above() const;
    };
    // A match count that a made-up row may have.
    struct Place {
        double chance;
        double above;  // rows of a larger count
        double equal;  // rows of this count
    };
    // What is known of a query: the ranks of its neighbours that count, nearest first, or the places of a made-up row.
    // Neither: it is not measured.
    struct Measured {
        std::vector<double> ranks;
        std::vector<Place> places;
    };
    using Shares = std::array<float, 4>;  // by Calibration::ks; negative: not measured
    static std::vector<double> ranks_of(const Query& query, float farthest);
    static std::vector<Place> places_of(const Query& query, double collision_chance);
    std::vector<Measured> measure(std::span<const CountedNeighbours> counted) const;
    static Shares shares_within(const Measured& query, std::size_t candidates, std::size_t others);

    std::vector<std::uint32_t> own_;
    std::vector<Query> queries_;
};

// Returns how many of the rows [first, first + count) are not in `dead`.
std::size_t live_rows(std::size_t first, std::size_t count, RowBitmap dead);

}  // namespace pgwarp::matchcount
