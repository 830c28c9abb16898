// A scan's filter, evaluated ahead for the answers of a k-NN join: for the results of a whole batch, in the order of
// the table's pages, and once for each row of a statement. The scan gets the rows that the filter keeps, and evaluates
// the filter again. Only filters whose value for a row never changes and that raise no error are evaluated ahead
// (evaluate_ahead.h).
#pragma once

#include "postgres/scan/prefetched_answers.h"

namespace pgwarp
{

struct AnswerFilter;

// Makes the filter of a scan, in the memory of its statement. Null when it must not be evaluated ahead, or when two
// bits for each row of the table exceed work_mem.
AnswerFilter* make_answer_filter(const AnsweredScan& scan);
// Whether the filter was made for this scan's node and the scan has a heap; null: false.
bool filters_for(const AnswerFilter* filter, const AnsweredScan& scan);

// Numbers for EXPLAIN ANALYZE.
struct FilteredCounts {
    uint64 looked_up;  // rows whose filter was evaluated
    uint64 dropped;    // of them: invisible rows, and rows that the filter drops
};

// Sets `filtered[count]` to `answers[count]` without the rows that the filter drops, as far as they are among the first
// `depth` results of an answer or their verdict is already known. Palloc'ed in the current memory context. `kept`, if
// not null: rows kept among the first `depth`.
void filter_answers(AnswerFilter* filter, const AnsweredScan& scan, const BatchAnswer* answers, uint32 count,
                    uint32 depth, BatchAnswer* filtered, uint64* kept);
// Whether most rows pass the filter, so that evaluating it ahead saves nothing.
bool is_useless(const AnswerFilter* filter);
FilteredCounts filtered_counts(const AnswerFilter* filter);

}  // namespace pgwarp
