#include "postgres/executor/answer_filter.h"

#include <algorithm>

#include "postgres/executor/evaluate_ahead.h"
#include "postgres/expression_walk.h"
#include "postgres/scan/heap_prefetch.h"

extern "C" {
#include "access/tableam.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
}

namespace pgwarp
{

// The state of each row, two bits, in the order of tuple ids: the rows of a page are adjacent. A row beyond the table's
// size when the filter was made has no place for its state; it is kept, and is not known to pass.
enum class Verdict : uint8 { unknown = 0, pending = 1, kept = 2, dropped = 3, no_place = 4 };

constexpr uint32 verdicts_per_word = 32;

// Loops over many rows take a copy, which stays in registers.
struct VerdictTable {
    uint64* words;
    BlockNumber blocks;
    uint32 page_bits;  // rows of a page, as a power of two; at least 5: each page begins at a word

    uint32 rows_per_page() const { return 1U << page_bits; }
    uint64 word_count() const { return (uint64{blocks} << page_bits) / verdicts_per_word; }
};

struct AnswerFilter {
    PlanState* node;
    ExprState* qual;
    ExprContext* context;
    VerdictTable table;
    FilteredCounts counts;
    uint32* ranks;  // working memory for one answer, [most_ranks]
    uint32 most_ranks;
};

namespace
{

constexpr uint32 chunk = 32;              // rows that are prefetched together
constexpr uint64 enough_to_judge = 4096;  // rows looked up before a filter that keeps most of them is given up
constexpr uint64 pending_bits = 0x5555555555555555;

static_assert(chunk <= most_prefetched_rows);

// Returns the number of verdicts for each page, as a power of two: twice the number of rows that an average page of the
// table holds.
uint32 choose_page_bits(Relation heap, BlockNumber blocks)
{
    const double per_page = Max(1.0, static_cast<double>(heap->rd_rel->reltuples)) / Max(1U, blocks);
    uint32 bits = 5;
    while ((1U << bits) < per_page * 2 && (1U << bits) < MaxOffsetNumber) ++bits;
    return bits;
}

// Replaces a KnnFilter's references to columns of its scan by the table's expressions for them.
Node* read_from_table(Node* node, void* targets)
{
    if (node == nullptr) return nullptr;
    if (!IsA(node, Var) || castNode(Var, node)->varno != INDEX_VAR) {
        return mutate_expression(node, read_from_table, targets);
    }
    const int place = castNode(Var, node)->varattno - 1;
    return reinterpret_cast<Node*>(static_cast<TargetEntry*>(list_nth(static_cast<List*>(targets), place))->expr);
}

// The conditions that filter the scan's rows, as expressions over a row of the table.
List* filter_conditions(const AnsweredScan& scan)
{
    if (scan.filter == nullptr) return scan.node->plan->qual;
    auto* conditions = reinterpret_cast<Node*>(scan.filter->plan->qual);
    return reinterpret_cast<List*>(read_from_table(conditions, scan.node->plan->targetlist));
}

// Not compiled by JIT: the scan's own copy of the conditions is compiled where that pays.
ExprState* make_qual(List* conditions, PlanState* node)
{
    EState* executor = node->state;
    const int jit_flags = executor->es_jit_flags;
    executor->es_jit_flags = PGJIT_NONE;
    ExprState* qual = ExecInitQual(conditions, node);
    executor->es_jit_flags = jit_flags;
    return qual;
}

bool has_place(const VerdictTable& table, Tid tid)
{
    return tid.block < table.blocks && tid.offset < table.rows_per_page();
}

uint64 place_of(const VerdictTable& table, Tid tid)
{
    return (uint64{tid.block} << table.page_bits) + tid.offset;
}

Verdict verdict_of(const VerdictTable& table, Tid tid)
{
    if (!has_place(table, tid)) return Verdict::no_place;
    const uint64 place = place_of(table, tid);
    return static_cast<Verdict>(table.words[place / verdicts_per_word] >> (place % verdicts_per_word * 2) & 3);
}

void set_verdict(const VerdictTable& table, Tid tid, Verdict verdict)
{
    if (!has_place(table, tid)) return;
    const uint64 place = place_of(table, tid);
    const uint64 shift = place % verdicts_per_word * 2;
    uint64& word = table.words[place / verdicts_per_word];
    word = (word & ~(uint64{3} << shift)) | static_cast<uint64>(verdict) << shift;
}

// Mark the rows of the answers with an unknown verdict as pending; return their number.
uint32 mark_pending(VerdictTable table, const BatchAnswer* answers, uint32 count, uint32 depth)
{
    uint32 pending = 0;
    for (uint32 i = 0; i < count; ++i) {
        const Result* results = answers[i].results;
        const uint32 most = Min(depth, answers[i].count);
        for (uint32 rank = 0; rank < most; ++rank) {
            if (verdict_of(table, results[rank].tid) != Verdict::unknown) continue;
            set_verdict(table, results[rank].tid, Verdict::pending);
            pending++;
        }
    }
    return pending;
}

// Returns the pending rows in the order of the table's pages.
Result* list_pending(VerdictTable table, uint32 pending)
{
    auto* rows = static_cast<Result*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Result) * pending));
    const uint64 words = table.word_count();
    uint32 found = 0;
    for (uint64 word = 0; word < words && found < pending; ++word) {
        const uint64 state = table.words[word];
        for (uint64 bits = state & ~(state >> 1) & pending_bits; bits != 0; bits &= bits - 1) {
            const uint64 place = word * verdicts_per_word + static_cast<uint32>(__builtin_ctzll(bits)) / 2;
            const auto block = static_cast<uint32>(place >> table.page_bits);
            rows[found++] = {{block, static_cast<uint16>(place % table.rows_per_page()), 0}, 0};
        }
    }
    return rows;
}

// Whether the snapshot sees a row at `tid`, and the filter keeps it.
bool lets_through(AnswerFilter* filter, const AnsweredScan& scan, IndexFetchTableData* fetch, Tid tid,
                  TupleTableSlot* slot)
{
    ItemPointerData pointer;
    ItemPointerSet(&pointer, tid.block, tid.offset);
    bool again = false;
    bool all_dead = false;
    reuse_page(scan.heap, fetch, tid.block);
    do {
        if (!table_index_fetch_tuple(fetch, &pointer, scan.snapshot, slot, &again, &all_dead)) continue;
        ResetExprContext(filter->context);
        filter->context->ecxt_scantuple = slot;
        return ExecQual(filter->qual, filter->context);
    } while (again);
    return false;
}

void decide_rows(AnswerFilter* filter, const AnsweredScan& scan, const Result* rows, uint32 count)
{
    const bool prefetches = may_prefetch(scan.heap);
    auto* near = static_cast<HeapPrefetch*>(palloc(sizeof(HeapPrefetch)));
    TupleTableSlot* slot = table_slot_create(scan.heap, nullptr);
    IndexFetchTableData* fetch = table_index_fetch_begin(scan.heap PGWARP_NO_SCAN_FLAGS);
    if (prefetches) prefetch_pages(scan.heap, rows, Min(chunk, count), near);
    for (uint32 first = 0; first < count; first += chunk) {
        CHECK_FOR_INTERRUPTS();
        const uint32 end = Min(first + chunk, count);
        if (prefetches) {
            prefetch_rows(*near);
            prefetch_pages(scan.heap, rows + end, Min(chunk, count - end), near);
        }
        for (uint32 i = first; i < end; ++i) {
            const bool kept = lets_through(filter, scan, fetch, rows[i].tid, slot);
            set_verdict(filter->table, rows[i].tid, kept ? Verdict::kept : Verdict::dropped);
            filter->counts.looked_up++;
            if (!kept) filter->counts.dropped++;
        }
    }
    table_index_fetch_end(fetch);
    ExecDropSingleTupleTableSlot(slot);
    pfree(near);
}

void decide_pending(AnswerFilter* filter, const AnsweredScan& scan, uint32 pending)
{
    Result* rows = list_pending(filter->table, pending);
    decide_rows(filter, scan, rows, pending);
    pfree(rows);
}

// Working memory for the ranks of an answer of `count` rows.
uint32* ranks_of(AnswerFilter* filter, uint32 count)
{
    if (count <= filter->most_ranks) return filter->ranks;
    if (filter->ranks != nullptr) pfree(filter->ranks);
    filter->ranks =
        static_cast<uint32*>(MemoryContextAllocHuge(filter->node->state->es_query_cxt, sizeof(uint32) * Size{count}));
    filter->most_ranks = count;
    return filter->ranks;
}

// Lists the ranks of the rows that are not known to be dropped; adds to `passing` those that are known to pass.
uint32 list_left(VerdictTable table, const BatchAnswer& answer, uint32* ranks, uint32* passing)
{
    const Result* results = answer.results;
    const uint32 count = answer.count;
    uint32 left = 0;
    uint32 kept = 0;
    for (uint32 rank = 0; rank < count; ++rank) {
        const Verdict verdict = verdict_of(table, results[rank].tid);
        if (verdict == Verdict::dropped) continue;
        kept += verdict == Verdict::kept ? 1 : 0;
        ranks[left++] = rank;
    }
    *passing += kept;
    return left;
}

template <class T>
T* copy_of_ranks(const T* all, const uint32* ranks, uint32 count)
{
    auto* copy = static_cast<T*>(palloc(sizeof(T) * Max(1U, count)));
    for (uint32 i = 0; i < count; ++i) copy[i] = all[ranks[i]];
    return copy;
}

// Copies an answer without the rows that are known to be dropped, which are most: only the rows that are left take
// memory, since a batch's memory goes back to the system and each of its pages costs a page fault. Returns the number
// of rows left among the first `depth`.
uint32 leave_out_dropped(AnswerFilter* filter, const BatchAnswer& answer, uint32 depth, BatchAnswer* filtered)
{
    uint32* ranks = ranks_of(filter, answer.count);
    uint32 passing = 0;
    const uint32 left = list_left(filter->table, answer, ranks, &passing);
    auto* own_ranks = static_cast<uint32*>(palloc(sizeof(uint32) * Max(1U, left)));
    if (left > 0) memcpy(own_ranks, ranks, sizeof(uint32) * left);
    uint64* places = answer.places == nullptr ? nullptr : copy_of_ranks(answer.places, ranks, left);
    *filtered = {answer.part, copy_of_ranks(answer.results, ranks, left), places, left, answer.count - left, passing,
                 own_ranks};
    return static_cast<uint32>(std::lower_bound(ranks, ranks + left, depth) - ranks);
}

}  // namespace

AnswerFilter* make_answer_filter(const AnsweredScan& scan)
{
    if (scan.node == nullptr || scan.heap == nullptr || !IsA(scan.node, IndexScanState)) return nullptr;
    EState* executor = scan.node->state;
    MemoryContext outer = MemoryContextSwitchTo(executor->es_query_cxt);
    List* conditions = filter_conditions(scan);
    MemoryContextSwitchTo(outer);
    if (conditions == NIL || !may_evaluate_ahead(reinterpret_cast<Node*>(conditions))) return nullptr;
    const BlockNumber blocks = RelationGetNumberOfBlocks(scan.heap);
    VerdictTable table = {nullptr, blocks, choose_page_bits(scan.heap, blocks)};
    const uint64 words = table.word_count();
    if (words == 0 || words * sizeof(uint64) > uint64{static_cast<uint32>(work_mem)} * 1024) return nullptr;
    MemoryContextSwitchTo(executor->es_query_cxt);
    auto* filter = static_cast<AnswerFilter*>(palloc0(sizeof(AnswerFilter)));
    filter->node = scan.node;
    filter->context = CreateExprContext(executor);
    filter->qual = make_qual(conditions, scan.node);
    table.words = static_cast<uint64*>(
        MemoryContextAllocExtended(executor->es_query_cxt, words * sizeof(uint64), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    filter->table = table;
    MemoryContextSwitchTo(outer);
    return filter;
}

bool filters_for(const AnswerFilter* filter, const AnsweredScan& scan)
{
    return filter != nullptr && filter->node == scan.node && scan.heap != nullptr;
}

void filter_answers(AnswerFilter* filter, const AnsweredScan& scan, const BatchAnswer* answers, uint32 count,
                    uint32 depth, BatchAnswer* filtered, uint64* kept)
{
    const uint32 pending = mark_pending(filter->table, answers, count, depth);
    if (pending > 0) decide_pending(filter, scan, pending);
    uint64 sum = 0;
    for (uint32 i = 0; i < count; ++i) sum += leave_out_dropped(filter, answers[i], depth, &filtered[i]);
    if (kept != nullptr) *kept = sum;
}

bool is_useless(const AnswerFilter* filter)
{
    const FilteredCounts& counts = filter->counts;
    return counts.looked_up >= enough_to_judge && counts.dropped * 3 < counts.looked_up;
}

FilteredCounts filtered_counts(const AnswerFilter* filter)
{
    return filter->counts;
}

}  // namespace pgwarp
