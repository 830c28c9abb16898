// The search of a text on the host, by a comparison with all texts whose lengths allow it: for the few queries that the
// device leaves.
#pragma once

#include <vector>

#include "methods/matchcount/texts_by_length.h"
#include "methods/method.h"
#include "numeric/edit_distance.h"

namespace pgwarp::cuda
{

struct HostQuery {
    TextView text;
    std::uint32_t k = 0;
    RowBitmap dead;
    RowResult after = {-1, 0};
    std::uint32_t within = no_edit_limit;  // texts that are farther are left out
    const CancelToken* cancel = nullptr;
};

// Returns the k nearest live rows behind `after` and within `within`, by (distance, row). Throws Cancelled.
std::vector<RowResult> scan_texts(const pgwarp::matchcount::TextsByLength& texts, const HostQuery& query,
                                  ThreadPool& pool);
// out[i] = the Levenshtein distance of text i of `rows` to the query, which is one text.
void compare_texts(const RowView& query, const RowView& rows, std::span<double> out);

}  // namespace pgwarp::cuda
