// The search of bags by BM25.
#include "methods/matchcount/bag_search.h"

#include <algorithm>
#include <cmath>

#include "methods/matchcount/slice_counter.h"
#include "methods/ordered_scan.h"

namespace pgwarp::matchcount
{

namespace
{

// Rows of a slice. Its sums stay in the first cache, or, where many terms take time in each slice, in the second.
std::uint32_t rows_of_slice(std::size_t terms)
{
    constexpr std::size_t many = 64;
    return terms < many ? 2048 : 16384;
}

// The postings of a term of the query.
struct TermPostings {
    double weight;
    std::uint64_t place;   // of the first posting in the list array
    Postings rows;         // from the slice on
    std::size_t here = 0;  // in the slice
    double bound = 0;      // of an addend in the slice
};

class BagSearch
{
public:
    BagSearch(const BagIndex& index, const PartQuery& query)
        : index_(index),
          query_(query),
          correction_(BagQuery{query.words}.correction()),
          first_rows_(query.k),
          polls_(query.cancel)
    {
        collect_terms();
        slice_rows_ = rows_of_slice(terms_.size());
        sums_.resize(slice_rows_);
        if (query.within < 0) least_ = std::nextafter(-query.within, 0.0);
        // Both a sum in any order and the canonical one have a relative error of at most 2^-53 an addend; the factors
        // of an addend have a few more, by which a bound might be too small.
        slack_ = 1 + static_cast<double>(terms_.size() + 16) * 0x1p-50;
    }

    std::vector<RowResult> run()
    {
        while (go_to_slice()) {
            bound_terms();
            if (choose_essential()) score_slice();
            leave_slice();
        }
        if (query_.within >= 0 && !first_rows_.full()) offer_unmatched();
        return first_rows_.take_sorted();
    }

private:
    // Terms are in ascending order, in which addends are added.
    void collect_terms()
    {
        const BagQuery query{query_.words};
        for (std::size_t i = 0; i < query.terms(); ++i) {
            const Item item = index_.dictionary.find(no_name, query.term(i), query.term(i));
            if (item.first > item.last) continue;
            terms_.push_back({query.weight(i), index_.lists.start(item.first), index_.lists.lists(item)});
        }
    }

    // Goes to the next slice that has postings. False at the end.
    bool go_to_slice()
    {
        if (terms_.empty()) return false;
        std::uint32_t next = terms_[0].rows.front();
        for (const TermPostings& term : terms_) next = std::min(next, term.rows.front());
        first_ = next / slice_rows_ * slice_rows_;
        return true;
    }

    void bound_terms()
    {
        for (TermPostings& term : terms_) {
            term.here = postings_below(term.rows, std::uint64_t{first_} + slice_rows_);
            term.bound = 0;
            if (term.here == 0) continue;
            const std::uint64_t last = (term.place + term.here - 1) / postings_of_block;
            for (std::uint64_t block = term.place / postings_of_block; block <= last; ++block) {
                const Impact& impact = index_.impacts[block];
                term.bound =
                    std::max(term.bound, term_score(term.weight, impact.frequency, correction_.of(impact.length)));
            }
        }
    }

    // Sorts the terms of the slice by bound and leaves out those that cannot alone make a result. False where none
    // remains.
    bool choose_essential()
    {
        essential_.clear();
        for (const TermPostings& term : terms_)
            if (term.here > 0) essential_.push_back(&term);
        std::sort(essential_.begin(), essential_.end(),
                  [](const TermPostings* a, const TermPostings* b) { return a->bound > b->bound; });
        others_.clear();
        rests_.assign(1, 0.0);
        while (!essential_.empty() && !exceeds(rests_.back() + essential_.back()->bound)) {
            rests_.push_back(rests_.back() + essential_.back()->bound);
            others_.push_back(essential_.back());
            essential_.pop_back();
        }
        return !essential_.empty();
    }

    // Whether a row whose score has this bound may be a result.
    bool exceeds(double bound) const { return bound * slack_ > least_; }

    void score_slice()
    {
        touched_.clear();
        for (const TermPostings* term : essential_) add_postings(*term);
        for (const std::uint32_t row : touched_) {
            const double sum = sums_[row - first_];
            sums_[row - first_] = 0;
            if (may_be_result(row, sum)) offer(row);
        }
    }

    void add_postings(const TermPostings& term)
    {
        for (std::size_t i = 0; i < term.here; ++i) {
            const std::uint32_t row = term.rows[i];
            double& sum = sums_[row - first_];
            if (sum == 0) touched_.push_back(row);
            sum += term_score(term.weight, index_.frequencies[term.place + i], correction_.of(index_.lengths[row]));
        }
        polls_.counted(term.here);
    }

    // Adds the addends of the other terms, the largest bound first, while the row may be a result.
    bool may_be_result(std::uint32_t row, double sum) const
    {
        const double corrected = correction_.of(index_.lengths[row]);
        for (std::size_t left = others_.size(); left > 0; --left) {
            if (!exceeds(sum + rests_[left])) return false;
            sum += addend(*others_[left - 1], row, corrected);
        }
        return exceeds(sum);
    }

    // The addend of a term, 0 where the row lacks it.
    double addend(const TermPostings& term, std::uint32_t row, double corrected) const
    {
        const Postings here = term.rows.first(term.here);
        const auto at = std::lower_bound(here.begin(), here.end(), row);
        if (at == here.end() || *at != row) return 0;
        const std::uint64_t place = term.place + static_cast<std::uint64_t>(at - here.begin());
        return term_score(term.weight, index_.frequencies[place], corrected);
    }

    double canonical_score(std::uint32_t row) const
    {
        const double corrected = correction_.of(index_.lengths[row]);
        double score = 0;
        for (const TermPostings& term : terms_) score += addend(term, row, corrected);
        return score;
    }

    void offer(std::uint32_t row)
    {
        if (bit_is_set(query_.dead, row)) return;
        offer({distance_of_score(canonical_score(row)), row});
    }
    void offer(const RowResult& found)
    {
        if (!(found.distance <= query_.within) || !comes_before(query_.after, found)) return;
        if (!first_rows_.takes(found)) return;
        first_rows_.offer(found);
        // Rows of the same score are looked at as well, since exceeds() takes a little less: an earlier one may come.
        if (first_rows_.full()) least_ = std::max(least_, -first_rows_.last_distance());
    }

    void leave_slice()
    {
        for (TermPostings& term : terms_) {
            term.place += term.here;
            term.rows = term.rows.subspan(term.here);
            polls_.counted(1);
        }
        std::erase_if(terms_, [](const TermPostings& term) { return term.rows.empty(); });
    }

    // Rows without a term of the query have the score 0; all others have a larger one.
    void offer_unmatched()
    {
        std::vector<std::uint64_t> matched((std::size_t{index_.lists.rows()} + 63) / 64);
        terms_.clear();
        collect_terms();
        for (const TermPostings& term : terms_) {
            for (const std::uint32_t row : term.rows) set_bit(matched, row);
            polls_.counted(term.rows.size());
        }
        for (std::uint32_t row = 0; row < index_.lists.rows() && !first_rows_.full(); ++row)
            if (!bit_is_set(matched, row) && !bit_is_set(query_.dead, row)) offer({distance_of_score(0), row});
    }

    const BagIndex& index_;
    const PartQuery& query_;
    LengthCorrection correction_;
    FirstRows first_rows_;
    PostingPolls polls_;
    std::vector<TermPostings> terms_;             // that have postings left
    std::vector<const TermPostings*> essential_;  // of the slice, by bound, descending
    std::vector<const TermPostings*> others_;     // by bound, ascending
    std::vector<double> rests_;                   // [others + 1]: the sum of the bounds of the first of them
    std::vector<double> sums_;                    // of the rows of the slice, over the essential terms; else 0
    std::vector<std::uint32_t> touched_;          // rows whose sums are not 0
    std::uint32_t slice_rows_ = 0;
    std::uint32_t first_ = 0;  // row of the slice
    double least_ = 0;         // a result has no smaller score, and a larger one than 0, unless it shares no term
    double slack_ = 1;
};

}  // namespace

std::vector<RowResult> search_bags(const BagIndex& index, const PartQuery& query)
{
    if (query.k == 0) return {};
    return BagSearch(index, query).run();
}

}  // namespace pgwarp::matchcount
