// The data sets of GENIE's experiments (section 7.1) as lists of parts, and their queries as items.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "methods/matchcount/match_count.h"
#include "methods/matchcount/vector_hashes.h"
#include "numeric/parallel.h"
#include "sources.h"

namespace pgwarp::bench::genie
{

using pgwarp::matchcount::Item;

inline constexpr std::uint32_t no_row = 0xffffffffU;

struct PartSet {
    std::string name;
    std::string parts;                   // what a part is
    std::vector<std::uint64_t> offsets;  // [rows + 1]
    std::vector<std::uint32_t> keywords;
    std::vector<std::vector<Item>> queries;
    // The row that a query is for: the nearest by brute force, or the text that it was made of; no_row where unknown.
    std::vector<std::uint32_t> targets;
    double make_seconds = 0;  // of the rows
    // Of signatures: keyword f * buckets + value for function f, in order; else 0.
    std::uint32_t buckets = 0;

    std::size_t rows() const { return offsets.size() - 1; }
    // The first rows.
    pgwarp::matchcount::KeywordRows first(std::size_t rows) const
    {
        return {std::span(offsets).first(rows + 1), std::span(keywords).first(offsets[rows])};
    }
};

// Parameters of LSH: the paper's functions and buckets (section 7.1.3), but for random binning the buckets that a byte
// holds, where the paper has 8,192.
inline constexpr std::size_t paper_functions = 237;
inline constexpr std::size_t paper_buckets = 67;
inline constexpr std::size_t binning_buckets = 255;

// The hash functions of sift (E2LSH under L2) or fashion (random binning under L1), drawn, with the width that the
// paper's section 7.1.1 and appendix I.2 ask for. E2LSH: 67 buckets cover 8.84 standard deviations of a.x. Random
// binning: the mean distance of pairs.
pgwarp::matchcount::VectorHashes paper_hashes(const std::string& name, const ByteVectors& vectors);
float paper_width(const std::string& name, const ByteVectors& vectors);
// [rows][functions]
std::vector<std::uint8_t> signatures(const pgwarp::matchcount::VectorHashes& hashes,
                                     const std::vector<std::uint8_t>& vectors, ThreadPool& pool);

// Squared L2 (sift) or L1 (fashion).
std::uint32_t byte_distance(bool l1, const std::uint8_t* a, const std::uint8_t* b, std::size_t dimensions);
// The k nearest rows of each of the first queries: (distance, row), ascending. By brute force.
using Nearest = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
std::vector<Nearest> nearest_by_brute_force(bool l1, const ByteVectors& vectors, std::size_t queries, std::size_t k,
                                            ThreadPool& pool);

// Equation 15 for one query. A true distance of 0 counts 1 where it is met, and is left out else.
double approximation_ratio(const Nearest& nearest, const Nearest& truth, std::size_t k, bool l1);
// The share of the k nearest that are among the first k found.
double recall_of(const Nearest& nearest, const Nearest& truth, std::size_t k);

// Edits at random places. Substitutions, or insertions, deletions and swaps of neighbours in turn.
enum class Edits { substitutions, others };
std::string with_edits(std::string text, std::size_t edits, Edits kind, std::mt19937& random);

// sift, fashion, titles, tweets, proteins or adult. Of adult there are ten times as many queries.
PartSet make_part_set(const std::string& name, const Sources& sources, std::size_t queries, ThreadPool& pool);
// The census rows `copies` times; items of numbers are ranges of +-`reach` of 1,024 intervals.
PartSet make_adult(const Sources& sources, std::size_t queries, std::size_t copies, std::uint32_t reach);

}  // namespace pgwarp::bench::genie
