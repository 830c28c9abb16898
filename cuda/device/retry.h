// Searches that run short of memory.
#pragma once

#include <new>

#include "methods/method.h"

namespace pgwarp::cuda
{

// Whether what is done beside a search has begun since: that is done once, so the search can't be tried again.
class MeanwhileWatch
{
public:
    explicit MeanwhileWatch(const SearchBatch& batch) : meanwhile_(batch.meanwhile), had_begun_(begun()) {}
    bool has_begun() const { return begun() != had_begun_; }

private:
    bool begun() const { return meanwhile_ != nullptr && meanwhile_->begun(); }

    const Meanwhile* meanwhile_;
    bool had_begun_;
};

// search(), and where memory is short once more after give_back(), which is to free what idle searches keep: what the
// first try took is given back by then. Throws std::bad_alloc where there is too little all the same.
template <class Search, class GiveBack>
void search_or_give_back(const SearchBatch& batch, const Search& search, const GiveBack& give_back)
{
    const MeanwhileWatch meanwhile(batch);
    try {
        return search();
    } catch (const std::bad_alloc&) {
        if (meanwhile.has_begun()) throw;
        give_back();
    }
    search();
}

}  // namespace pgwarp::cuda
