// Scores of sparse vectors, as sparse_search.h defines them: the addends of a query, and a bound of the errors of
// scores in float32.
#pragma once

#include <vector>

#include "methods/matchcount/sparse_index.h"

namespace pgwarp::matchcount
{

// A term that the query shares with rows. The addend of a value's number n is n * factor; under L1 the nearest number
// between 0 and `most`.
struct QueryTerm {
    SparseTerm of_rows;
    float factor;
    float most;
};

// The query's side of scores.
class SparseScore
{
public:
    SparseScore(const SparseIndex& index, const SparseView& query);

    const std::vector<QueryTerm>& terms() const { return terms_; }
    bool clamps() const { return metric_ == Metric::l1; }
    // Whether scores are finite. Otherwise they propose nothing.
    bool in_range() const;
    // Return bounds of the scores in float32 of rows at this canonical distance.
    double least_score(double distance) const { return score_of(distance) - error_; }
    double most_score(double distance) const { return score_of(distance) + error_; }

private:
    void collect_terms(const SparseIndex& index, const SparseView& query);
    double score_of(double distance) const;

    Metric metric_;
    double norm_;           // of the query: L1 under that metric, else L2
    double magnitude_ = 0;  // a bound of the sum of the absolute addends of a row
    double largest_base_;
    double error_;
    std::vector<QueryTerm> terms_;
};

}  // namespace pgwarp::matchcount
